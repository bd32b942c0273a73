/** Say something to whoever runs this program, on its standard error output. */
export function warn(text: string): void {
  console.warn(`holdshort: ${text}`);
}
