package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The scopes that a session or a token can have: what a caller may do. A scope does not include another one.
const (
	// ScopeRead shows message bodies, settings, and what apps, hooks and other servers said.
	ScopeRead = "read"
	// ScopeAct changes queues, messages and tasks, and stops the environment.
	ScopeAct = "act"
	// ScopeDeploy runs code: deployments and reloads.
	ScopeDeploy = "deploy"
)

// Scopes returns the scopes that a session or a token can have.
func Scopes() []string { return []string{ScopeRead, ScopeAct, ScopeDeploy} }

// CheckScopes refuses names that are not scopes.
func CheckScopes(scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return NewError(http.StatusBadRequest, "unknown scope "+strconv.Quote(scope), "use "+strings.Join(Scopes(), ", "))
		}
	}
	return nil
}

// callerNameKey is the key of the caller's name in a context.
type callerNameKey struct{}

// WithCallerName returns a context for work that a caller of the console asked for.
func WithCallerName(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, callerNameKey{}, who)
}

// CallerName returns the caller who asked for the work done with ctx, as in [Caller]; "" for other work.
func CallerName(ctx context.Context) string {
	who, _ := ctx.Value(callerNameKey{}).(string)
	return who
}

// Caller is what the console knows of the sender of a request.
type Caller struct {
	// Who is "owner", "session" with a number, "token" with a name, or "anyone"; "" if the caller is unknown.
	Who string `json:"who,omitempty"`
	// Scopes are of the Scope constants.
	Scopes []string `json:"scopes"`
	// ReadOnly is whether every act is refused, BodiesHidden whether bodies are shown on request only.
	ReadOnly     bool `json:"read_only"`
	BodiesHidden bool `json:"bodies_hidden"`
}
