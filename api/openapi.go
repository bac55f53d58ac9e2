package api

// noBody is the body of an act without parameters.
type NoBody struct{}
