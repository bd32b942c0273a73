/** Where an agent says what its code is not told; `console` is one. */
export interface Log {
  /** What happened. */
  info(message: string): void;
  /** What went wrong and is tried again, or was dropped. */
  warn(message: string): void;
  /** What somebody has to mend. */
  error(message: string): void;
}
