package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"tendril/api"
	"tendril/internal/testing/testpeer"
)

// The test binary also runs as the programs that scripts use.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"tendril": main, "get-config": main, "testapp": testapp})
}

type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	testpeer.Parallel(4)
	code := testpeer.Contained(l.m).Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		return 1
	}
	return code
}

// testapp prints a line per message. It answers "status N" with N and the text after "because", "slow" after a moment,
// "stuck" never, and other messages with 200. It sends the text after "outcome" as the header Tendril-Outcome; with
// "first", only at the first receive. For "extended", it requests more time and answers after six seconds. If
// APP_SIGNING_SECRET is set, it refuses unsigned requests.
func testapp() {
	port := os.Getenv("PORT")
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if key := os.Getenv("APP_SIGNING_SECRET"); key != "" && !signedBy(key, r.Header, body) {
			fmt.Println("testapp refused", r.URL)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if size := r.Header.Get("X-Tendril-Batch-Size"); size != "" {
			answerBatch(w, size, body)
			return
		}
		at := ""
		if r.URL.Path != "/" {
			at = " at " + r.URL.Path
		}
		fmt.Printf("testapp got %s receive %s%s\n", body, r.Header.Get("X-Aws-Sqsd-Receive-Count"), at)
		if task := r.Header.Get("X-Aws-Sqsd-Taskname"); task != "" {
			fmt.Printf("testapp ran %s at %s\n", task, r.URL)
		}
		if strings.Contains(string(body), "slow") {
			<-time.After(300 * time.Millisecond)
		}
		if strings.Contains(string(body), "extended") {
			w.Header().Set("Tendril-Outcome", "extend; for=1m")
			w.WriteHeader(http.StatusProcessing)
			w.Header().Del("Tendril-Outcome")
			<-time.After(6 * time.Second) // longer than the inactivity timeout
		}
		isFirst := r.Header.Get("X-Aws-Sqsd-Receive-Count") == "1" || !strings.Contains(string(body), "first")
		if _, outcome, found := strings.Cut(string(body), " outcome "); found && isFirst {
			w.Header().Set("Tendril-Outcome", outcome)
		}
		if strings.Contains(string(body), "stuck") {
			<-r.Context().Done()
		}
		status := http.StatusOK
		if _, code, found := strings.Cut(string(body), "status "); found {
			status, _ = strconv.Atoi(code[:min(3, len(code))])
		}
		w.WriteHeader(status)
		if _, reason, found := strings.Cut(string(body), " because "); found {
			fmt.Fprint(w, reason)
		}
	})
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	if dir := os.Getenv("APP_TLS"); dir != "" {
		fmt.Fprintln(os.Stderr, serveTLS(dir, "127.0.0.1:"+port, mux))
		os.Exit(1)
	}
	fmt.Println("testapp listens on", port)
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, mux))
	os.Exit(1)
}

func signedBy(key string, header http.Header, body []byte) bool {
	receiver, err := standardwebhooks.NewWebhook(key)
	return err == nil && receiver.Verify(body, header) == nil
}

func answerBatch(w io.Writer, size string, body []byte) {
	var batch struct {
		Records []struct {
			ID   string `json:"messageId"`
			Body string `json:"body"`
		}
	}
	var reply struct {
		Failures []map[string]string `json:"batchItemFailures"`
	}
	err := json.Unmarshal(body, &batch)
	fmt.Printf("testapp got a batch of %s: %v\n", size, err)
	for _, r := range batch.Records {
		if strings.Contains(r.Body, "fail") {
			reply.Failures = append(reply.Failures, map[string]string{"itemIdentifier": r.ID})
		}
	}
	_ = json.NewEncoder(w).Encode(reply)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for name, value := range map[string]string{
				"HOME":                      env.WorkDir,
				"XDG_STATE_HOME":            env.WorkDir + "/state",
				"TENDRIL_DATA_DIR":          env.WorkDir + "/data",
				"TENDRIL_LISTEN":            "127.0.0.1:0",
				"TENDRIL_CONSOLE":           "127.0.0.1:0",
				"TENDRIL_PORT":              testpeer.FreePort(t),
				"AWS_EC2_METADATA_DISABLED": "true",
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"running": scriptRunning, "exits": scriptExits, "until": scriptUntil, "signal": scriptSignal, "http": scriptHTTP,
			"zip": scriptZip, "agree": scriptAgree,
			"misuse":    scriptMisuse,
			"functions": scriptFunctions, "nowhere": scriptNowhere, "defaultports": scriptDefaultPorts,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "mounts": // private mounts are allowed
				return exec.Command("unshare", "--mount", "mount", "--make-rprivate", "/").Run() == nil, nil
			}
			return false, fmt.Errorf("there is no condition %s", name)
		},
	})
}

const patience = 2 * time.Minute // a busy machine may need most of one

func poll(ask func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("after %s: %w", patience, err)
		}
	}
}

// scriptRunning waits until an environment is ready, and sets PID, ENDPOINT, CONSOLE, QUEUE_URL and TOKEN.
func scriptRunning(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: running")
	}
	dir := ts.Getenv("TENDRIL_DATA_DIR")
	ts.Check(poll(func() error {
		c, err := api.Dial(dir)
		if errors.Is(err, api.ErrOff) {
			return nil
		}
		if err != nil {
			return err
		}
		defer c.Close()
		st, err := c.Status(context.Background())
		if err == nil && !st.Ready {
			err = fmt.Errorf("not ready: %v", st.Checks)
		}
		return err
	}))
	i, err := api.ReadInstance(dir)
	ts.Check(err)
	token, _ := api.ReadToken(dir) // absent without a console
	for name, value := range map[string]string{
		"PID": strconv.Itoa(i.PID), "ENDPOINT": i.Endpoint, "CONSOLE": i.Console, "QUEUE_URL": i.Queue("").URL,
		"TOKEN": token,
	} {
		ts.Setenv(name, value)
	}
}

// Example: exits 6 tendril peek x
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGS...]")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

var misused = regexp.MustCompile(`^tendril: [^\n]+\n(hint: [^\n]+\n)+$`)

var defaultPorts sync.Mutex

// scriptDefaultPorts unsets the addresses for the rest of the script. Only one script at a time may do so: environments
// with different state folders could choose the same free port.
func scriptDefaultPorts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: defaultports")
	}
	defaultPorts.Lock()
	ts.Defer(defaultPorts.Unlock)
	for _, name := range []string{"TENDRIL_LISTEN", "TENDRIL_CONSOLE", "TENDRIL_PORT"} {
		ts.Setenv(name, "")
	}
}

// scriptMisuse also requires exactly one problem with at least one hint. For example: misuse 2 tendril upp
func scriptMisuse(ts *testscript.TestScript, neg bool, args []string) {
	scriptExits(ts, neg, args)
	if said := ts.ReadFile("stderr"); !misused.MatchString(said) {
		ts.Fatalf("standard error is not one problem with hints:\n%s", said)
	}
	if out := ts.ReadFile("stdout"); strings.Contains(out, "Usage:") {
		ts.Fatalf("standard output contains the usage text:\n%s", out)
	}
}

// scriptAgree requires that tendril check and tendril up fail alike with the same arguments, except that check
// continues after the first port in use. Example: agree 2 app --pid-file none/pid
func scriptAgree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: agree STATUS [ARGS...]")
	}
	refused := map[string]string{}
	for _, verb := range []string{"check", "up"} {
		scriptExits(ts, false, append([]string{args[0], "tendril", verb}, args[1:]...))
		for line := range strings.Lines(ts.ReadFile("stderr")) {
			if strings.HasPrefix(line, "tendril: ") || strings.HasPrefix(line, "hint: ") {
				refused[verb] += strings.ReplaceAll(line, "tendril check", "tendril up")
			}
		}
	}
	if refused["up"] == "" || !strings.Contains(refused["check"], refused["up"]) {
		ts.Fatalf("check says\n%sup says\n%s", refused["check"], refused["up"])
	}
}

// Example: until 'plum' tendril dead list
func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM [ARGS...]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	ts.Check(poll(func() error {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			return err
		}
		if out := ts.ReadFile("stdout"); !pattern.MatchString(out) {
			return fmt.Errorf("no match for %s in\n%s", args[0], out)
		}
		return nil
	}))
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL,
		"HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "TSTP": syscall.SIGTSTP}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal TERM|INT|KILL|HUP|USR1|USR2|TSTP")
	}
	pid, err := strconv.Atoi(ts.Getenv("PID"))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

func scriptZip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: zip ARCHIVE FOLDER")
	}
	ts.Check(zipFolder(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

func zipFolder(archive, folder string) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	return errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), f.Close())
}

// Example: http POST /api/v1/drain TOKEN {}
func scriptHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: http METHOD PATH [TOKEN|@FILE [BODY]]")
	}
	args = append(args, "", "")
	if file, ok := strings.CutPrefix(args[2], "@"); ok {
		args[2] = strings.TrimSpace(ts.ReadFile(file))
	}
	req, err := http.NewRequestWithContext(context.Background(), args[0], "http://"+ts.Getenv("CONSOLE")+args[1],
		strings.NewReader(args[3]))
	ts.Check(err)
	if args[2] != "" {
		req.Header.Set("Authorization", "Bearer "+args[2])
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s", resp.StatusCode, body)
}

// scriptFunctions serves Lambda functions and sets AWS_ENDPOINT_URL_LAMBDA. The configuration of a function named
// denied cannot be read. For example: functions resize denied
func scriptFunctions(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: functions NAME...")
	}
	refuse := func(w http.ResponseWriter, status int, shape string) {
		w.Header().Set("X-Amzn-Errortype", shape)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"Message":"%s"}`, shape)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/2015-03-31/functions/"), "/")
		switch asked := r.Method == http.MethodGet; {
		case asked && name == "denied":
			refuse(w, http.StatusForbidden, "AccessDeniedException")
		case !slices.Contains(args, name):
			refuse(w, http.StatusNotFound, "ResourceNotFoundException")
		case asked:
			fmt.Fprint(w, `{"Timeout":3}`)
		case r.Header.Get("X-Amz-Invocation-Type") == "DryRun":
			w.WriteHeader(http.StatusNoContent)
		default:
			fmt.Fprint(w, "null")
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
}
