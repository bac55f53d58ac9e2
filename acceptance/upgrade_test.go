package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func older(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TENDRIL_OLDER")
	if path == "" {
		t.Skip("TENDRIL_OLDER is not set: '.ci/nightly upgrades' sets it to the binary of an earlier commit")
	}
	return path
}

// A pause must apply to all instances or be refused.
func TestOlderAndNewerVersionsShareARegistry(t *testing.T) {
	old, current := older(t), program(t).Path
	for _, c := range []struct {
		name, serve string
		ups         []string
	}{
		{"older instances, newer server", current, []string{old, old}},
		{"newer instances, older server", old, []string{current, current}},
		{"mixed instances, newer server", current, []string{current, old}},
		{"mixed instances, older server", old, []string{old, current}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newSharedQueueOf(t, c.serve)
			var all []*member
			for _, path := range c.ups {
				all = append(all, f.upOf(t, path, t.TempDir(), f.endpoint))
			}
			for _, m := range all {
				eventually(t, "each knows both", func() bool {
					return strings.Count(m.tendril(t, "instances"), "running") == len(all)
				})
			}
			for i := range 20 {
				f.queue.put(t, fmt.Sprint("message ", i))
			}
			f.queue.awaitEmpty(t, f.app)
			if posts := len(f.app.all()); posts != 20 {
				t.Errorf("20 messages were posted %d times", posts)
			}

			for _, m := range all {
				out, err := exec.Command(m.path, "queues", "pause", "--reason", "upgrade", "--data-dir", m.dir).CombinedOutput()
				if err != nil && !strings.Contains(string(out), "would not follow") {
					t.Errorf("pausing: %v\n%s", err, out)
				}
				for _, other := range all {
					eventually(t, fmt.Sprintf("after the pause %q, all are alike", out), func() bool {
						paused, _ := other.paused(t)
						return paused == (err == nil)
					})
				}
				if err == nil {
					m.tendril(t, "queues", "resume")
				}
			}
		})
	}
}
