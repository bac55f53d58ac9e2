package console

import (
	"context"
	"errors"
	"net/http"

	"tendril/periodic"
)

// ReloadResult says what a reload did. The zero value is a reload after which
// everything is as it was.
type ReloadResult struct {
	// File is the file of periodic tasks that was read, Tasks how many of them are
	// in force now; "" and 0 when none was read.
	File  string `json:"file,omitempty"`
	Tasks int    `json:"tasks"`
	// NotScheduled says why those tasks are not in force; "" when they are.
	NotScheduled string `json:"notScheduled,omitempty"`
	// Deployed is what took the place of the app's version that ran, since files
	// of it had changed; nil when the app runs on.
	Deployed *DeployResult `json:"deployed,omitempty"`
	// Settings names the settings that changed and are in force now, Later those
	// that wait for the next start.
	Settings []string `json:"settings,omitempty"`
	Later    []string `json:"later,omitempty"`
	// Unchanged is the folder in which nothing had changed; "" when something was
	// reloaded.
	Unchanged string `json:"unchanged,omitempty"`
}

// postReload puts in force what changed, or refuses it with everything that is
// wrong. It goes on when the caller goes away, as a deployment does.
func (s *Server) postReload(r *http.Request) (answer, error) {
	reload := s.opts.Reload
	if reload == nil {
		t, err := s.tasks()
		if err != nil {
			return answer{}, err
		}
		reload = t.reload
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	ctx, cancel := s.bounded(context.WithoutCancel(r.Context()), MaxDeploy)
	defer cancel()
	done, err := reload(ctx)
	return ok(done), reloadRefusal(err)
}

// reload reads the tasks again, for an environment that has nothing else to
// reload.
func (t *TaskOptions) reload(context.Context) (ReloadResult, error) {
	if err := t.Reload(); err != nil {
		return ReloadResult{}, err
	}
	st := t.Status()
	return ReloadResult{File: st.File, Tasks: len(st.Tasks)}, nil
}

// reloadRefusal says what an error of a reload means to the caller.
func reloadRefusal(err error) error {
	var wrong *periodic.Error
	var own *Error
	var failed *DeployError
	switch {
	case errors.As(err, &wrong):
		refusal := refuse(http.StatusBadRequest, "the file of tasks is refused; the tasks in force stay as they are", "")
		for _, p := range wrong.Problems {
			refusal.Details = append(refusal.Details, Detail{p.String(), p.Hint})
		}
		return refusal
	case err == nil || errors.As(err, &own) || errors.As(err, &failed):
		return deployRefusal(err)
	}
	return refuse(http.StatusConflict, err.Error(), "'tendril status' shows what runs and what is under way")
}
