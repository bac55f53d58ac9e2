package acceptance

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const sharedAddress = "10.77.0.1:9324"

func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked, so that the thread exits with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
			t.Fatalf("making a network namespace: %v", err)
		}
		t.Skipf("NOT TESTED on an address of the machine: making a network namespace: %v", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	up := func(name string) {
		flags, err := unix.NewIfreq(name)
		if err != nil {
			t.Fatal(err)
		}
		flags.SetUint16(unix.IFF_UP)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, flags); err != nil {
			t.Fatalf("setting up %s: %v", name, err)
		}
	}
	up("lo")
	const alias = "lo:1"
	address, err := unix.NewIfreq(alias)
	if err == nil {
		err = address.SetInet4Addr([]byte{10, 77, 0, 1})
	}
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCSIFADDR, address)
	}
	if err != nil {
		t.Fatalf("giving the machine an address: %v", err)
	}
}

func copyFor(t *testing.T, dir, from string) string {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := filepath.Join(dir, filepath.Base(from))
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
		out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestSharedQueueOfThreeUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED with several users: it takes root")
	}
	t.Parallel()
	ownNetwork(t)
	open := t.TempDir()
	for _, dir := range []string{open, filepath.Dir(open)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tendril, app := copyFor(t, open, program(t).Path), copyFor(t, open, os.Args[0])
	home := func(uid int) string {
		dir := filepath.Join(open, fmt.Sprint(uid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	const owner, worker, sender = 65101, 65102, 65103
	homes := map[int]string{owner: home(owner), worker: home(worker), sender: home(sender)}
	command := func(uid int, args ...string) *exec.Cmd {
		cmd := exec.Command(tendril, args...)
		cmd.Dir = homes[uid]
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		return cmd
	}
	environ := func(uid int, keys ...string) []string {
		return append(keys, "HOME="+homes[uid], "XDG_STATE_HOME="+homes[uid], "XDG_CONFIG_HOME="+homes[uid])
	}
	with := func(cmd *exec.Cmd, env []string) *exec.Cmd {
		cmd.Env = env
		return cmd
	}
	output := func(cmd *exec.Cmd, env ...string) (string, error) {
		cmd.Env = append(append(os.Environ(), "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true"), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	create := func(name string, more ...string) (keys []string) {
		args := append([]string{"credentials", "create", name, "--credentials", "credentials.json"}, more...)
		text, err := output(command(owner, args...), environ(owner)...)
		if err != nil {
			t.Fatalf("creating the key pair %s: %v\n%s", name, err, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "AWS_") {
				keys = append(keys, strings.TrimSpace(line))
			}
		}
		return keys
	}
	workerKeys, senderKeys := create("worker"), create("web", "--send-only", "--queue", "jobs")

	serve := launchCommand(t, with(command(owner, "serve", "--listen", sharedAddress, "--credentials", "credentials.json",
		"--console", "off", "--log-format", "json"), environ(owner)))
	serve.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	endpoint := "AWS_ENDPOINT_URL_SQS=http://" + sharedAddress
	if text, err := output(command(worker, "queues", "create", "jobs", "--backend", "sqs"),
		environ(worker, append(workerKeys, endpoint)...)...); err != nil {
		t.Fatalf("creating the queue: %v\n%s", err, text)
	}
	url := "http://" + sharedAddress + "/000000000000/jobs"
	up := launchCommand(t, with(command(worker, "up", "--queue-url", url, "--console", "off", "--log-format", "json", "--",
		app), environ(worker, append(workerKeys, "ACCEPTANCE_ROLE=app", "ACCEPTANCE_JOURNAL="+homes[worker]+"/journal")...)))
	up.await(t, "it started", func(e event) bool { return e.Msg == "started" })

	send := func(keys ...string) (string, error) {
		return output(command(sender, "send", "--queue", url, "hello"), environ(sender, keys...)...)
	}
	if text, err := send(senderKeys...); err != nil {
		t.Errorf("sending: %v\n%s", err, text)
	}
	up.await(t, "the message was done", func(e event) bool { return e.Msg == "settled" && e.Outcome == "done" })
	if text, err := send("AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"); err == nil ||
		!strings.Contains(text, "SignatureDoesNotMatch") && !strings.Contains(text, "not signed with valid credentials") {
		t.Errorf("sending with other keys: %v\n%s", err, text)
	}
	if text, err := output(command(sender, "peek", "--queue", url), environ(sender, senderKeys...)...); err == nil {
		t.Errorf("the sender may look into the queue:\n%s", text)
	}
}
