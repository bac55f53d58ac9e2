package deploy

import (
	"strings"
	"testing"

	"tendril/api"
)

// Only replicas that get new messages have positions.
func TestProcessToRestart(t *testing.T) {
	t.Parallel()
	app := []api.Process{{Name: "web-4"}, {Name: "web-5"}, {Name: "web-2", State: "stopping", Role: api.RoleRetired},
		{Name: "web-6", Role: api.RoleQuarantine}, {Name: "mailer"}}
	for name, want := range map[string]string{"web": "web-4", "web-5": "web-5", "mailer": "mailer", "web-6": "web-6"} {
		if got, err := processToRestart(app, name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"web-2": `process "web-2" is draining`, "web-3": `process "web-3" not found`} {
		if got, err := processToRestart(app, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", name, got, err, want)
		}
	}
}
