package console

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"time"
)

// MaxDeploy is the longest that one deployment may take, the last delivery of
// the old version included.
const MaxDeploy = 15 * time.Minute

// DeployResult is a deployment that went well.
type DeployResult struct {
	// From and To name the version that served before and the one that serves
	// now, for people.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// DurationMS is how long it took until the old version was gone, in
	// milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Later names the settings that changed with it and wait for the next start.
	Later []string `json:"later,omitempty"`
}

// DeployError is a deployment that was begun and went wrong.
type DeployError struct {
	// Switched tells that the new version has the messages all the same: what
	// failed came after. Otherwise the previous version is still serving.
	Switched bool
	// Stopped tells that it ended since the environment stops, and no version is serving.
	Stopped bool
	// Step names the hook, the build command or the process that failed; "" when
	// it was none of them. Output holds the last lines that it wrote.
	Step   string
	Output []string
	// Err is the cause.
	Err error
}

// Error returns the cause's text.
func (e *DeployError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DeployError) Unwrap() error { return e.Err }

// deployment is the body of a deploy.
type deployment struct {
	// Path is that of a folder or an archive; "" is what runs now.
	Path string `json:"path"`
}

// postDeploy answers when the deployment is over: 200 when the new version
// serves and the old one is gone, 422 when it went wrong, 409 when it could not
// be begun. It goes on when the caller goes away.
func (s *Server) postDeploy(r *http.Request) (answer, error) {
	if s.opts.Deploy == nil {
		return answer{}, refuse(http.StatusConflict, "this environment runs no app whose version could change",
			"start it with 'tendril up DIR'")
	}
	var body deployment
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	if body.Path != "" && !filepath.IsAbs(body.Path) {
		return answer{}, refuse(http.StatusBadRequest, "the path "+strconv.Quote(body.Path)+" is not absolute",
			"name the folder from the root: the environment works in another one than you")
	}
	ctx, cancel := s.bounded(context.WithoutCancel(r.Context()), MaxDeploy)
	defer cancel()
	result, err := s.opts.Deploy(ctx, body.Path)
	return ok(result), deployRefusal(err)
}

// deployRefusal says what an error of [Options].Deploy means to the caller.
func deployRefusal(err error) error {
	var own *Error
	var failed *DeployError
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &failed):
		hint := "the previous version is still serving; fix the problem and redeploy"
		if failed.Switched {
			hint = "the new version is serving; fix the problem and redeploy"
		}
		if failed.Stopped {
			hint = "the environment stops; deploy again when it runs again"
		}
		return &Error{Status: http.StatusUnprocessableEntity, Message: err.Error(), Hint: hint, Switched: failed.Switched,
			Step: failed.Step, Output: failed.Output}
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusNotFound, err.Error(), "name a folder that the environment can read")
	}
	return refuse(http.StatusConflict, err.Error(), "'tendril status' shows what is under way")
}
