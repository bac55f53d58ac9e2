package acceptance

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// The picture in the README is taken only on request:
//
//	TENDRIL_PICTURES=$PWD/docs/images go test ./acceptance -run TestPictureOfABusyConsole
func TestPictureOfABusyConsole(t *testing.T) {
	folder := os.Getenv("TENDRIL_PICTURES")
	if folder == "" {
		t.Skip("TENDRIL_PICTURES names no folder for the picture")
	}

	bundle := writeBundle(t, map[string]string{
		"Procfile":  appLine(os.DevNull, "v1"),
		"cron.yaml": consoleTasks,
		"tendril.yaml": "queues: [payments:3, emails:2, thumbnails:1]\nmax_retries: 2\nerror_visibility_timeout: 2\n" +
			"http_connections: 20\n",
	})
	data := t.TempDir()
	p := launchIn(t, bundle, nil, "up", ".", "--allow-root", "--data-dir", data, "--listen", "127.0.0.1:0", "--console",
		"127.0.0.1:"+testpeer.FreePort(t), "--port", testpeer.FreePort(t), "--name", "shop")
	e := &consoleEnvironment{process: p, data: data, bundle: bundle}
	e.await(t, "it is ready", func(e event) bool { return e.Msg == "ready" })

	begin := time.Now()
	for second := 0; time.Since(begin) < 5*time.Minute; second++ {
		e.sendLines(t, "payments", jobs(12, "150ms capture")+jobs(second%40/39, "refuse 4711"))
		e.sendLines(t, "emails", jobs(8+8*(second/60%2), "80ms welcome"))
		e.sendLines(t, "thumbnails", jobs(6, "400ms resize")+jobs(second%75/74, "refuse 12"))
		<-time.After(time.Second)
	}

	b := e.signIn(t)
	b.look("light", 1280)
	b.await("charts", "document.querySelectorAll('canvas').length >= 4")
	t.Setenv("TENDRIL_SCREENSHOTS", folder)
	b.screenshot("overview")
}

func jobs(n int, body string) string { return strings.Repeat(fmt.Sprintf("{\"body\": %q}\n", body), n) }
