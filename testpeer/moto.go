package testpeer

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var motoListens = regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)

// Moto starts a server of moto, a stand-in for Amazon, until the test ends. It knows these
// services ("sqs", "dynamodb"). Its threads share no lock: what is one step at Amazon is
// several there.
func Moto(t testing.TB, services ...string) (endpoint string) {
	t.Helper()
	modules := []string{"moto.server"}
	for _, service := range services {
		modules = append(modules, "moto."+service+".models")
	}
	python := Python(t, "moto[server,"+strings.Join(services, ",")+"]", modules...)
	moto := exec.Command(python, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0")
	moto.Env = append(os.Environ(), "PYTHONUNBUFFERED=1", "NO_COLOR=1")
	stderr, err := moto.StderrPipe()
	if err := cmp.Or(err, moto.Start()); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string, 1), make(chan struct{})
	go func() { // reads on, so that moto never waits for us
		defer close(ended)
		defer close(found)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := motoListens.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = moto.Process.Kill() // it is gone, or goes now
		<-ended
		_ = moto.Wait() // the kill is its exit status
	})
	endpoint, ok := <-found
	if !ok {
		t.Fatal("moto ended before it was listening")
	}
	return endpoint
}
