package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// Scopes of a session or token. No scope implies another.
const (
	// ScopeRead permits reading message bodies, settings, and the output of apps, hooks and other servers.
	ScopeRead = "read"
	// ScopeAct permits changing queues, messages and tasks, and stopping the environment.
	ScopeAct = "act"
	// ScopeDeploy permits running code: deployments and reloads.
	ScopeDeploy = "deploy"
)

// Scopes returns all scopes.
func Scopes() []string { return []string{ScopeRead, ScopeAct, ScopeDeploy} }

// CheckScopes rejects unknown scopes.
func CheckScopes(scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return BadRequest("unknown scope "+strconv.Quote(scope), "use "+strings.Join(Scopes(), ", "))
		}
	}
	return nil
}

type callerNameKey struct{}

// WithCallerName returns a context with the name of a console caller.
func WithCallerName(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, callerNameKey{}, who)
}

// CallerName returns the name from [WithCallerName], as in [Caller].Who, or "".
func CallerName(ctx context.Context) string {
	who, _ := ctx.Value(callerNameKey{}).(string)
	return who
}

// Caller describes the sender of a request.
type Caller struct {
	// Who is "owner", "session" with a number, "token" with a name, "local user" without a token, or "" if unknown.
	Who    string   `json:"who,omitempty"`
	Scopes []string `json:"scopes"`
	// ReadOnly callers cannot use actions. BodiesHidden means that bodies are included only on request.
	ReadOnly     bool `json:"read_only"`
	BodiesHidden bool `json:"bodies_hidden"`
}

// May reports whether the caller can use actions that need the scope.
func (c *Caller) May(scope string) bool { return !c.ReadOnly && slices.Contains(c.Scopes, scope) }
