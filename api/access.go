package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// Scopes of a session or token. No scope includes another.
const (
	// ScopeRead permits reading message bodies, settings, events, logs, versions, instances, and texts from the app, hooks
	// and other servers. They may contain secrets.
	ScopeRead = "read"
	// ScopeAct permits sending, changing queues, messages, tasks and most options, and stopping the environment.
	ScopeAct = "act"
	// ScopeDeploy permits deployments, restarts and reloads, and changing options for programs, files and targets.
	ScopeDeploy = "deploy"
)

// Scopes returns all scopes.
func Scopes() []string { return []string{ScopeRead, ScopeAct, ScopeDeploy} }

// CheckScopes returns an error if a scope is unknown.
func CheckScopes(scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return BadRequest("unknown scope "+strconv.Quote(scope), "use "+strings.Join(Scopes(), ", "))
		}
	}
	return nil
}

type callerNameKey struct{}

// WithCallerName returns a context with a console caller's name.
func WithCallerName(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, callerNameKey{}, who)
}

// CallerName returns the name set by [WithCallerName], or "".
func CallerName(ctx context.Context) string {
	who, _ := ctx.Value(callerNameKey{}).(string)
	return who
}

// Caller is the sender of a request.
type Caller struct {
	// Who is "owner", "local user" if no token is needed, "session" and a number, "token" and a name, "drain hook",
	// "another instance", or "" if unknown.
	Who    string   `json:"who,omitempty"`
	Scopes []string `json:"scopes"`
	// ReadOnly forbids actions. BodiesHidden means that responses include message bodies only on request.
	ReadOnly     bool `json:"read_only"`
	BodiesHidden bool `json:"bodies_hidden"`
}

// May reports whether the caller may use actions that require the scope.
func (c *Caller) May(scope string) bool { return !c.ReadOnly && slices.Contains(c.Scopes, scope) }
