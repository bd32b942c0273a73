package runs

import "context"

// Place is where in a run some code is: in which branch, and whether inside a step.
type Place struct {
	Run    *Run
	Branch string
	InStep bool
}

type placeKey struct{}

// At is where the code of this context is; false outside a run.
func At(ctx context.Context) (Place, bool) {
	place, there := ctx.Value(placeKey{}).(Place)
	return place, there
}

// With is the context of code at a place.
func With(ctx context.Context, place Place) context.Context {
	return context.WithValue(ctx, placeKey{}, place)
}

// Named is how ids that are made here begin: with the reasoner, and the branch where there is one.
func (p Place) Named() string {
	if p.Branch == "" {
		return p.Run.Reasoner
	}
	return p.Run.Reasoner + "/" + p.Branch
}
