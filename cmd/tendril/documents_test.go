package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// notRun lists commands that cannot run on a test machine, with the reason; "..." stands for any text. Entries that no
// page uses fail the test.
var notRun = map[string]string{
	"go install ./cmd/tendril":  "this binary is tendril",
	"go test ...":               "it would run this test",
	"go run ./bench/report ...": "it would measure for minutes",
	"go run -C tools ...":       "it would measure the tests for an hour",
	"aws ...":                   "it is a program of Amazon",
	"ssh ...":                   "it needs another machine",
	"tendril open":              "it would open a browser",
	"tendril open --scope read": "it would open a browser",
	"tendril top":               "it needs a terminal, as TestTopOnATerminal has",
	"tendril top --interval 5s": "it needs a terminal, as TestTopOnATerminal has",
	"tendril up --target https://app.internal:8443/ ...": "it needs an app with TLS, as target_tls.txtar has",
	"sudo ...":     "it would install a service on this machine",
	"sudoedit ...": "it would change a file of this machine",
}

// leastRun and countNotRun keep commands from being skipped unnoticed.
const leastRun, countNotRun = 237, 22

func isNotRun(entry, command string) bool {
	command, _, _ = strings.Cut(command, " #")
	command = strings.TrimSpace(command)
	if begin, ok := strings.CutSuffix(entry, "..."); ok {
		return strings.HasPrefix(command, begin)
	}
	return command == entry
}

// varying lists text that differs between runs. It is replaced in the page and in the output before they are compared.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{messageID, "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d| UTC)\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)? ?(µs|ms|s|m|h|d))+\b`), "DURATION"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (second|minute|hour)s?\b`), "DURATION"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`), "$1:PORT"},
	{regexp.MustCompile(`((^|\s)PORT=|listens on |port )\d+`), "${1}PORT"},
	{regexp.MustCompile(`\b(process|PID|pid)(=| )\d+`), "${1}${2}PID"},
	{regexp.MustCompile(`\b(running +(yes|no) +|term )\d+`), "${1}N"},
	{regexp.MustCompile(` on \S+/web\b`), " on HOST/web"},
	{regexp.MustCompile(`tendril \d+\.\d+\.\d+\S*`), "tendril VERSION"},
	{regexp.MustCompile(`[^\s(]*/(bin|go)/(go|testapp|node|python3)\b`), "$2"},
	{regexp.MustCompile(`\s+`), " "},
}

var messageID = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

func unvarying(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// pageStep is a command to type, or a directive for the test in a comment, such as
//
//	<!-- test: folder NAME -->            the commands run in this folder, below the reader's
type pageStep struct {
	line      int
	command   string
	directive string
	text      string
	want      []string
	python    string
	// first and last are set for a block's first and last command, heading if it starts a section.
	first, last, heading bool
}

var programs = regexp.MustCompile(`^(tendril|curl|go|python3|export|cd|echo|docker|systemctl|ssh|aws|sudo|ls|cat|cp|kill) `)

// pageSteps parses a page. Indented lines are commands. A block "console" has commands after "$ ", with their output. A
// block "python" is a sample. An unnamed block after indented commands is the output of the last one.
func pageSteps(page string) []pageStep {
	var out []pageStep
	var fence string
	var sample strings.Builder
	begin := 0
	inCode := false
	behind := false
	end := func() {
		if inCode && len(out) > begin {
			out[len(out)-1].last = true
			behind = true
		}
		inCode = false
	}
	command := func(number int, text string) {
		if n := len(out); inCode && n > begin && strings.HasSuffix(out[n-1].command, "\\") {
			out[n-1].command = strings.TrimSuffix(out[n-1].command, "\\") + text
			return
		}
		if !inCode {
			begin, inCode = len(out), true
		}
		out = append(out, pageStep{line: number, command: text, first: len(out) == begin})
	}
	comment := false
	for i, line := range strings.Split(page, "\n") {
		number, bare := i+1, strings.TrimSpace(line)
		if bare != "" && !strings.HasPrefix(bare, "```") && fence == "" {
			behind = false
		}
		switch info, isFence := strings.CutPrefix(bare, "```"); {
		case isFence && fence != "":
			if fence == "python" {
				if n := len(out); n > 0 && strings.HasPrefix(out[n-1].directive, "file ") {
					out[n-1].text = sample.String() // run below, like every sample
				}
				out = append(out, pageStep{line: number, python: sample.String(), first: true, last: true})
			}
			fence = ""
			end()
		case isFence:
			end()
			if fence = cmp.Or(info, "text"); info == "" && behind {
				fence = "output"
				out[len(out)-1].want = []string{}
			}
			sample.Reset()
		case fence == "python":
			sample.WriteString(line + "\n")
		case fence == "console":
			if typed, ok := strings.CutPrefix(bare, "$ "); ok {
				command(number, typed)
			} else if n := len(out); inCode && n > begin {
				out[n-1].want = append(out[n-1].want, line)
			}
		case fence == "output":
			out[len(out)-1].want = append(out[len(out)-1].want, line)
		case fence != "":
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1].directive, "file ") {
				out[n-1].text += line + "\n"
			}
		case bare == "<!-- test:":
			comment = true
		case comment && bare == "-->":
			comment = false
		case comment:
			out = append(out, pageStep{line: number, directive: bare})
		case strings.HasPrefix(bare, "<!-- test: "):
			end()
			directive := strings.TrimSuffix(strings.TrimPrefix(bare, "<!-- test: "), " -->")
			out = append(out, pageStep{line: number, directive: directive})
		case strings.HasPrefix(line, "#"):
			end()
			out = append(out, pageStep{line: number, heading: true})
		case strings.HasPrefix(line, "    ") && (programs.MatchString(bare) || inCode && bare != ""):
			command(number, bare)
		default:
			end()
		}
	}
	end()
	return out
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the pages take minutes: not with -short")
	}
	pages := map[string][]pageStep{}
	run, left := 0, 0
	unused := maps.Clone(notRun)
	for path, text := range docs(t) {
		pages[path] = pageSteps(text)
		for _, s := range pages[path] {
			if s.command == "" && s.python == "" {
				continue
			}
			run++
			for entry := range notRun {
				if isNotRun(entry, s.command) {
					delete(unused, entry)
					run, left = run-1, left+1
				}
			}
		}
	}
	for entry := range unused {
		t.Errorf("no page has the command %q: remove it from notRun", entry)
	}
	if run < leastRun || left != countNotRun {
		t.Errorf("%d commands are run and %d are not, want at least %d, and %d", run, left, leastRun, countNotRun)
	}
	t.Run("pages", func(t *testing.T) {
		for path, all := range pages {
			if !slices.ContainsFunc(all, func(s pageStep) bool { return s.command != "" || s.python != "" }) {
				continue
			}
			t.Run(strings.TrimPrefix(path, "../../"), func(t *testing.T) {
				t.Parallel()
				r := newReader(t)
				for _, s := range all {
					r.follow(&s)
				}
				r.stop()
			})
		}
	})
}

type reader struct {
	t        *testing.T
	root     string
	folder   string
	env      []string
	status   int
	keep     bool // keep running environments when another one starts
	unready  bool // do not wait for the app
	skipping bool
	running  []*environmentProcess
	// as maps names on the page to names in this run.
	as     map[string]string
	lastID string
	cloud  []string
}

// environmentProcess is a long-running command: an environment, or one that follows a list.
type environmentProcess struct {
	cmd    *exec.Cmd
	typed  string
	output string
	ended  chan struct{}
	err    error
}

func (p *environmentProcess) begin() error {
	p.ended = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

func (p *environmentProcess) over() error {
	select {
	case <-p.ended:
		return nil
	default:
		return errors.New("it has not ended")
	}
}

func newReader(t *testing.T) *reader {
	root, err := os.MkdirTemp("", "page") // t.TempDir is too long for socket paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	r := &reader{t: t, root: root, folder: root, as: map[string]string{"/shared/": root + "/shared/"}}
	for from, to := range map[string]string{"testdata/documents": ".", "../../examples": "examples"} {
		if err := os.CopyFS(filepath.Join(r.root, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile("../../" + file)
		if err := cmp.Or(err, os.WriteFile(filepath.Join(r.root, file), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(r.root, "shared"), 0o700),
		os.Chmod(filepath.Join(r.root, "bin/python3"), 0o700), os.Chmod(filepath.Join(r.root, "bin/flask"), 0o700),
		zipFolder(filepath.Join(r.root, "app-v2.zip"), filepath.Join(r.root, "path/to/app")),
		zipFolder(filepath.Join(r.root, "shop.zip"), filepath.Join(r.root, "shop"))); err != nil {
		t.Fatal(err)
	}
	r.env = append(goEnvironment(t), "HOME="+r.root, "XDG_STATE_HOME="+r.root+"/.local/state",
		"TENDRIL_LOG_FORMAT=text", "TENDRIL_LISTEN=127.0.0.1:0", "TENDRIL_CONSOLE=127.0.0.1:0",
		"AWS_EC2_METADATA_DISABLED=true", "NO_PROXY=127.0.0.1,localhost",
		"PATH="+filepath.Join(r.root, "bin")+":"+os.Getenv("PATH"))
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(app.Close)
	t.Cleanup(r.kill)
	for _, port := range []string{"8080", "8081"} {
		r.as["127.0.0.1:"+port] = app.Listener.Addr().String()
	}
	r.as["/srv/orders"] = root + "/orders"
	r.as["0.0.0.0:9324"] = "0.0.0.0:" + testpeer.FreePort(t)
	return r
}

// goEnvironment omits settings of tendril and AWS. GOCOVERDIR, if set, measures the coverage of the commands.
func goEnvironment(t *testing.T) []string {
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOROOT").Output()
	values := map[string]string{}
	if err := cmp.Or(err, json.Unmarshal(out, &values)); err != nil {
		t.Fatal(err)
	}
	env := []string{"LANG=C.UTF-8", "TZ=UTC", "GOPATH=" + filepath.Dir(filepath.Dir(values["GOMODCACHE"]))}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	if dir, measured := os.LookupEnv("GOCOVERDIR"); measured {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

func (r *reader) fatalf(s *pageStep, format string, args ...any) {
	r.t.Helper()
	var log strings.Builder
	for _, p := range r.running {
		text, _ := os.ReadFile(p.output)
		fmt.Fprintf(&log, "\n--- %s printed at last\n%s", p.typed, testpeer.LastLines(string(text)))
	}
	r.t.Fatalf("line %d: %s\n%s%s", s.line, cmp.Or(s.command, s.directive), fmt.Sprintf(format, args...), log.String())
}

var goesOn = regexp.MustCompile(`^(cd \w+ && )?(go run \./cmd/)?tendril (up|serve|--?function|logs -f|events -f)`)

func (r *reader) follow(s *pageStep) {
	if s.heading {
		r.skipping = false
		return
	}
	if r.skipping {
		return
	}
	if s.directive != "" {
		r.direct(s)
		return
	}
	for prefix := range notRun {
		if isNotRun(prefix, s.command) {
			return
		}
	}
	want := 0
	if s.last {
		want, r.status = r.status, 0
	}
	switch {
	case s.python != "":
		r.sample(s)
	case r.changesShell(s.command):
	default:
		r.run(s, want)
	}
	if s.last {
		r.keep = false
	}
}

func (r *reader) direct(s *pageStep) {
	word, rest, _ := strings.Cut(s.directive, " ")
	switch word {
	case "folder":
		r.folder = filepath.Join(r.root, rest)
	case "file":
		if err := os.WriteFile(filepath.Join(r.folder, rest), []byte(s.text), 0o600); err != nil {
			r.fatalf(s, "%v", err)
		}
	case "set":
		r.env = append(r.env, r.withOwnAddresses(rest))
	case "sh":
		r.run(&pageStep{line: s.line, command: rest}, 0)
	case "up":
		rest, r.unready = strings.CutSuffix(rest, "--unready")
		r.run(&pageStep{line: s.line, command: strings.TrimSpace("tendril up " + rest)}, 0)
		r.unready = false
	case "until":
		text, command, _ := strings.Cut(rest, ": ")
		r.until(s, func() error {
			out, _ := r.output(command)
			if !strings.Contains(out, text) {
				return fmt.Errorf("no %q in\n%s", text, out)
			}
			return nil
		})
	case "exits":
		r.status, _ = strconv.Atoi(rest)
	case "together":
		r.keep = true
	case "stop":
		r.stop()
	case "needs":
		if rest == "moto" {
			r.skipping = os.Getenv("TENDRIL_PYTHON") == ""
			if r.skipping {
				r.t.Run("needs moto", func(t *testing.T) { testpeer.Python(t, "moto", "moto") })
			}
			return
		}
		if _, err := exec.LookPath(rest); err != nil {
			r.t.Run("needs "+rest, func(t *testing.T) { testpeer.Program(t, rest) })
			r.skipping = true
		}
	default:
		r.fatalf(s, "there is no directive %q", word)
	}
}

func (r *reader) changesShell(command string) bool {
	if values, ok := strings.CutPrefix(command, "export "); ok {
		r.env = append(r.env, strings.Fields(values)...)
		return true
	}
	if folder, ok := strings.CutPrefix(command, "cd "); ok && !strings.Contains(folder, "&&") {
		r.folder = filepath.Join(r.folder, strings.Fields(folder)[0])
		return true
	}
	return false
}

var ownPort = regexp.MustCompile(`--(listen|console) 127\.0\.0\.1:\d+`)

func (r *reader) withOwnAddresses(text string) string {
	text = ownPort.ReplaceAllString(text, "--$1 127.0.0.1:0")
	pairs := []string{"go run ./cmd/tendril", "tendril"}
	if r.lastID != "" {
		pairs = append(pairs, "MESSAGE-ID", r.lastID)
	}
	for of, is := range r.as {
		pairs = append(pairs, of, is)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (r *reader) command(typed string) *exec.Cmd {
	folder := r.folder
	if into, rest, ok := strings.Cut(typed, " && "); ok && strings.HasPrefix(into, "cd ") {
		folder, typed = filepath.Join(folder, strings.TrimPrefix(into, "cd ")), rest
	}
	cmd := exec.Command("sh", "-c", r.withOwnAddresses(typed))
	cmd.Dir, cmd.Env = folder, r.env
	if r.meansAmazon(typed) {
		cmd.Env = append(slices.Clone(r.cloud), r.env...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (r *reader) output(typed string) (out string, status int) {
	var both bytes.Buffer
	cmd := r.command(typed)
	cmd.Stdout, cmd.Stderr = &both, &both
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		status = ended.ExitCode()
	} else if err != nil {
		return err.Error(), -1
	}
	return both.String(), status
}

// reads matches commands that change nothing, which are repeated until their output matches the page.
var reads = regexp.MustCompile(`^tendril (status|health|ps|peek|top|describe|explain|check|versions|message show|` +
	`config show|dead (list|show|reasons)|queues (list|show)|tasks( history| list)?($| [^rp])|events|logs)|^curl [^-]*$|^ls|^cat`)

func (r *reader) run(s *pageStep, status int) {
	r.t.Helper()
	if r.meansAmazon(s.command) {
		r.amazon()
	}
	if strings.HasPrefix(s.command, "tendril terminate") {
		r.stop()
	}
	if goesOn.MatchString(s.command) && status == 0 {
		r.start(s)
		return
	}
	try := func() error {
		out, got := r.output(s.command)
		if got != status {
			return fmt.Errorf("exit status %d, want %d:\n%s", got, status, out)
		}
		if ids := messageID.FindAllString(out, -1); len(ids) > 0 {
			r.lastID = ids[0]
		}
		return r.requireLines(s.want, out)
	}
	if reads.MatchString(s.command) {
		r.until(s, try)
	} else if err := try(); err != nil {
		r.fatalf(s, "%v", err)
	}
}

func (r *reader) until(s *pageStep, try func() error) {
	r.t.Helper()
	if err := poll(try); err != nil { // the command may have to compile an example
		r.fatalf(s, "%v", err)
	}
}

// requireLines treats "..." in want as omitted lines.
func (r *reader) requireLines(want []string, got string) error {
	if want == nil {
		return nil
	}
	lines := nonEmpty(strings.Split(strings.ReplaceAll(got, r.root, "/home/ada"), "\n"))
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "warning: TENDRIL_LISTEN: ")
	})
	rest, gap := lines, false
	for _, line := range nonEmpty(want) {
		if strings.TrimSpace(line) == "..." {
			gap = true
			continue
		}
		at := slices.IndexFunc(rest, func(l string) bool { return unvarying(l) == unvarying(line) })
		if at < 0 || at > 0 && !gap {
			return fmt.Errorf("the page shows\n\t%s\nwhich is not in\n%s", line, strings.Join(rest, "\n"))
		}
		for i, id := range messageID.FindAllString(line, -1) {
			r.as[id] = messageID.FindAllString(rest[at], -1)[i]
		}
		rest, gap = rest[at+1:], false
	}
	if len(rest) > 0 && !gap {
		return fmt.Errorf("the page does not show\n%s", strings.Join(rest, "\n"))
	}
	return nil
}

func nonEmpty(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.TrimSpace(l) == "" })
}

func (r *reader) start(s *pageStep) {
	r.t.Helper()
	if !r.keep && !strings.Contains(s.command, " -f") {
		r.stop()
	}
	file, err := os.CreateTemp(r.t.TempDir(), "output")
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	typed := strings.TrimSuffix(strings.TrimSpace(s.command), " &")
	p := &environmentProcess{cmd: r.command("exec " + strings.TrimPrefix(typed, "exec ")), typed: typed,
		output: file.Name()}
	if strings.HasPrefix(typed, "cd ") {
		into, rest, _ := strings.Cut(typed, " && ")
		p.cmd = r.command(into + " && exec " + rest)
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.Env = append(slices.Clone(p.cmd.Env), "TENDRIL_PORT="+testpeer.FreePort(r.t))
	if err := p.begin(); err != nil {
		r.fatalf(s, "%v", err)
	}
	r.running = append(r.running, p)
	follows := strings.Contains(typed, " -f")
	r.until(s, func() error {
		text, err := os.ReadFile(p.output)
		switch {
		case err != nil:
			return err
		case p.over() == nil:
			r.fatalf(s, "it ended: %v", p.err)
		case !follows:
			if err := r.ready(p); err != nil {
				return err
			}
		case len(text) == 0:
			_, _ = r.output("tendril queues pause && tendril queues resume")
			return errors.New("it has printed nothing")
		}
		if s.want == nil {
			return nil
		}
		return r.requireLines(append(slices.Clone(s.want), "..."), string(text))
	})
	if follows {
		r.running = r.running[:len(r.running)-1]
		r.end(p, syscall.SIGINT, 130)
	}
}

type listed struct {
	Name, Endpoint, Console string
	PID                     int
	DataDir                 string `json:"data_dir"`
}

func (r *reader) environments() (all []listed) {
	var out bytes.Buffer
	cmd := r.command("tendril ps -o json")
	cmd.Stdout = &out
	if cmd.Run() != nil || json.Unmarshal(out.Bytes(), &all) != nil {
		return nil
	}
	return all
}

func (r *reader) ready(p *environmentProcess) error {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err
	}
	all := r.environments()
	at := slices.IndexFunc(all, func(e listed) bool { return e.PID == p.cmd.Process.Pid })
	if at < 0 {
		// An environment with its own data directory, or without a console, is not listed.
		if !regexp.MustCompile(`--data-dir|--console off`).MatchString(p.typed) {
			return fmt.Errorf("it is not in the list of environments: %v", all)
		}
		if !strings.Contains(string(text), "console ") {
			return errors.New("it has not started")
		}
		return nil
	}
	e := all[at]
	for page, is := range map[string]string{"127.0.0.1:9324": e.Endpoint, "127.0.0.1:9325": e.Console} {
		if is != "" {
			r.as[page] = strings.TrimPrefix(is, "http://")
		}
	}
	if m := regexp.MustCompile(`POST http://localhost:(\d+)`).FindSubmatch(text); m != nil {
		r.as["127.0.0.1:5000"] = "127.0.0.1:" + string(m[1])
	}
	r.as["USR2 PID"] = "USR2 " + strconv.Itoa(e.PID)
	r.as["localhost:9324"] = strings.Replace(r.as["127.0.0.1:9324"], "127.0.0.1", "localhost", 1)
	if e.Console == "" || r.unready {
		return nil
	}
	out, status := r.output("tendril status --data-dir " + e.DataDir)
	if first, _, _ := strings.Cut(out, "\n"); status != 0 || strings.Contains(first, "not ready") ||
		!strings.Contains(first, "ready") && !strings.Contains(p.typed, "serve") {
		return fmt.Errorf("its state is\n%s", out)
	}
	return nil
}

func (r *reader) stop() {
	r.t.Helper()
	for _, p := range slices.Backward(r.running) {
		r.end(p, syscall.SIGTERM, 0)
	}
	r.running = nil
}

func (r *reader) end(p *environmentProcess, signal syscall.Signal, status int) {
	r.t.Helper()
	_ = p.cmd.Process.Signal(signal) // the page may already have drained it
	if err := poll(p.over); err != nil {
		r.t.Errorf("%s: %v", p.typed, err)
	} else if got := p.cmd.ProcessState.ExitCode(); got != status {
		text, _ := os.ReadFile(p.output)
		r.t.Errorf("%s: exit status %d, want %d\n%s", p.typed, got, status, testpeer.LastLines(string(text)))
	}
}

func (r *reader) kill() {
	for _, p := range r.running {
		if p.over() != nil {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.ended
		}
	}
}

func (r *reader) meansAmazon(command string) bool {
	return regexp.MustCompile(`amazonaws\.com|--backend sqs|--region|--?function[ =]my-function|tendril generate alarms`).
		MatchString(command)
}

func (r *reader) amazon() {
	if r.cloud != nil {
		return
	}
	r.cloud = []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1"}
	functions := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method == http.MethodGet:
			fmt.Fprint(w, `{"Timeout":3}`)
		case req.Header.Get("X-Amz-Invocation-Type") == "DryRun":
			w.WriteHeader(http.StatusNoContent)
		default:
			fmt.Fprint(w, "null")
		}
	}))
	r.t.Cleanup(functions.Close)
	if python := os.Getenv("TENDRIL_PYTHON"); python != "" {
		moto := testpeer.Moto(r.t, "sqs", "cloudwatch", "dynamodb", "autoscaling", "s3")
		r.cloud = append(r.cloud, "AWS_ENDPOINT_URL="+moto)
	} else {
		// Other services are unreachable, so no request leaves this machine.
		r.cloud = append(r.cloud, "AWS_ENDPOINT_URL_SQS="+r.serve(), "AWS_ENDPOINT_URL=http://127.0.0.1:1")
	}
	r.cloud = append(r.cloud, "AWS_ENDPOINT_URL_LAMBDA="+functions.URL)
}

func (r *reader) serve() (endpoint string) {
	port := testpeer.FreePort(r.t)
	typed := "exec tendril serve --listen localhost:" + port + " --console off --data-dir amazon"
	p := &environmentProcess{cmd: r.command(typed), typed: typed, output: os.DevNull}
	p.cmd.Dir = r.t.TempDir() // in the page's folder, its commands would mean this environment
	if err := p.begin(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.end(p, syscall.SIGTERM, 0) })
	if err := poll(func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return "http://127.0.0.1:" + port
}

func (r *reader) sample(s *pageStep) {
	r.t.Run("python", func(t *testing.T) {
		python := testpeer.Python(t, "boto3", "boto3")
		cmd := exec.Command(python, "-c", r.withOwnAddresses(s.python))
		cmd.Dir, cmd.Env = r.folder, r.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("line %d: %v\n%s", s.line, err, out)
		}
	})
}
