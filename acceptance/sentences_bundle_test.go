package acceptance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/testing/testpeer"
)

type seenByObserver struct {
	Event     string
	Version   string
	PID       int
	Parent    int
	UID       int
	Env       []string
	URI, Body string
	From      string
	Port      string // the daemon's
	Header    http.Header
}

func observer() error {
	journal, err := os.OpenFile(os.Getenv("WITNESS_JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	write := func(s seenByObserver) {
		s.Version, s.PID, s.Parent, s.UID = os.Getenv("WITNESS_VERSION"), os.Getpid(), os.Getppid(), os.Getuid()
		line, _ := json.Marshal(s)
		journal.Write(append(line, '\n')) // a single, atomic write
	}
	write(seenByObserver{Event: "start", Env: os.Environ()})
	fmt.Println("the observer begins")
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		from, port, _ := net.SplitHostPort(r.RemoteAddr)
		if r.Method != http.MethodPost {
			write(seenByObserver{Event: "get", URI: r.URL.RequestURI(), From: from, Header: r.Header})
			return
		}
		write(seenByObserver{Event: "post", URI: r.URL.RequestURI(), Body: string(body), From: from, Port: port, Header: r.Header})
		switch string(body) {
		case "refuse":
			http.Error(w, "no such customer", http.StatusUnprocessableEntity)
			return
		case "crash":
			if r.Header.Get("X-Aws-Sqsd-Receive-Count") == "1" {
				os.Exit(7)
			}
		}
		if work, err := time.ParseDuration(string(body)); err == nil {
			time.Sleep(work)
		}
		if file, ok := strings.CutPrefix(string(body), "until "); ok {
			for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
				time.Sleep(10 * time.Millisecond)
			}
		}
		write(seenByObserver{Event: "done", Body: string(body)})
	})
	server := &http.Server{Addr: ":" + os.Getenv("PORT"), Handler: mux}
	term, ended := make(chan os.Signal, 1), make(chan error, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-term:
		write(seenByObserver{Event: "term"})
		return nil
	}
}

func observerLine(journal, version string) string {
	return fmt.Sprintf("web: ACCEPTANCE_ROLE=observer WITNESS_JOURNAL=%s WITNESS_VERSION=%s exec %s\n", journal, version,
		os.Args[0])
}

func readObserver(t *testing.T, journal string) (all []seenByObserver) {
	t.Helper()
	f, err := os.Open(journal)
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s seenByObserver
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			all = append(all, s)
		}
	}
	return all
}

func awaitObserver(t *testing.T, journal, what string, n int, wanted func(seenByObserver) bool) (found []seenByObserver) {
	t.Helper()
	eventually(t, what, func() bool {
		found = slices.DeleteFunc(readObserver(t, journal), func(s seenByObserver) bool { return !wanted(s) })
		return len(found) >= n
	})
	return found
}

func posts(body string) func(seenByObserver) bool {
	return func(s seenByObserver) bool { return s.Event == "post" && s.Body == body }
}

func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
		t.Errorf("no line matches %s:\n%s", pattern, text)
	}
}

const exampleCron = `version: 1
cron:
 - name: "backup-job"
   url: "/backup"
   schedule: "0 */12 * * *"
 - name: "audit"
   url: "/audit"
   schedule: "0 23 * * *"
`

func TestSentencesBundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journal, hooks := filepath.Join(dir, "journal"), filepath.Join(dir, "hooks")
	hook := func(name string) string {
		return fmt.Sprintf("#!/bin/sh\necho %s $GREETING $(wc -l < %s 2>/dev/null || echo 0) >> %s\n", name, journal, hooks)
	}
	files := map[string]string{
		"Procfile":  observerLine(journal, "1"),
		"cron.yaml": exampleCron,
		".ebextensions/worker.config": "option_settings:\n  aws:elasticbeanstalk:sqsd:\n    HttpPath: /work\n" +
			"    MimeType: text/x-mine; v=1\n    HttpConnections: 7\n    MaxRetries: 2\n    ConnectTimeout: 3\n" +
			"    ErrorVisibilityTimeout: 0\n    VisibilityTimeout: 44\n" +
			"  aws:elasticbeanstalk:application:environment:\n    GREETING: hello\n",
		"env.yaml":                               "OptionSettings:\n  aws:elasticbeanstalk:sqsd:\n    InactivityTimeout: 17\n",
		".platform/hooks/prebuild/02_second.sh":  hook("prebuild-2"),
		".platform/hooks/prebuild/01_first.sh":   hook("prebuild-1"),
		".platform/hooks/predeploy/10_pre.sh":    hook("predeploy"),
		".platform/hooks/postdeploy/10_post.sh":  hook("postdeploy"),
		".platform/confighooks/predeploy/10.sh":  hook("confighook"),
		".platform/confighooks/postdeploy/10.sh": hook("confighook-post"),
	}
	bundle, port, pidFile, logs := writeBundle(t, files), testpeer.FreePort(t), filepath.Join(dir, "pid"), filepath.Join(dir, "logs")
	s := open(t, t.TempDir(), []string{"TENDRIL_APP_LOG_DIR=" + logs}, "--name", "shop", "--port", port, "--pid-file", pidFile,
		bundle)
	awaitWeb(t, s.process)
	c := client(s.started.Endpoint)
	id := sendBody(t, s.started, "hello there")
	sendBody(t, s.started, "refuse")
	first := awaitObserver(t, journal, "the message came", 1, posts("hello there"))[0]
	var asked time.Time
	tasks := ""
	for tasks == "" || time.Now().Truncate(time.Hour).After(asked) { // not while the next runs change
		asked = time.Now().UTC()
		tasks = s.must("tasks", "list")
	}
	run := strings.TrimSpace(s.must("tasks", "run", "backup-job"))
	audit := strings.TrimSpace(s.must("tasks", "run", "audit"))
	ran := func(id string) func(seenByObserver) bool {
		return func(s seenByObserver) bool { return s.Header.Get("X-Aws-Sqsd-Msgid") == id }
	}
	backup := awaitObserver(t, journal, "the task came", 1, ran(run))[0]
	audited := awaitObserver(t, journal, "the other task came", 1, ran(audit))[0]
	begun := readObserver(t, journal)[0]
	own := attributes(t.Context(), t, c, s.started.QueueURL)
	dead, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: new("shop-dead")})
	if err != nil {
		t.Fatal(err)
	}
	settings := s.must("config", "show", "--all")
	described := s.must("describe")

	row(t, "A7", func(t *testing.T) {
		for name, value := range map[string]string{"http-connections": "7", "max-retries": "2", "connect-timeout": "3s",
			"inactivity-timeout": "17s", "error-visibility-timeout": "0s", "visibility-timeout": "44s"} {
			matches(t, settings, `^`+name+` +`+value+` `)
		}
	})
	row(t, "A75", func(t *testing.T) {
		matches(t, settings, `^inactivity-timeout +17s .*env.yaml`)
		matches(t, settings, `^http-path +/work .*worker.config`)
	})
	expect(t, "A60", first.URI, "/work")
	expect(t, "A61", first.Header.Get("Content-Type"), "text/x-mine; v=1")
	row(t, "A25", func(t *testing.T) {
		eventually(t, "the message is in the dead-letter queue", func() bool {
			return attributes(t.Context(), t, c, *dead.QueueUrl)["ApproximateNumberOfMessages"] == "1"
		})
	})
	row(t, "A26", func(t *testing.T) {
		eventually(t, "the letter and its reason are listed", func() bool {
			out, _ := s.do("dead", "list", "--queue", "shop-dead")
			return regexp.MustCompile(`422.* refuse`).MatchString(out)
		})
		matches(t, s.must("dead", "list", "--queue", "shop-dead", "-o", "json"), "no such customer")
	})
	row(t, "A27", func(t *testing.T) { matches(t, own["RedrivePolicy"], `:shop-dead"`) })
	row(t, "A31", func(t *testing.T) {
		matches(t, own["RedrivePolicy"], `"maxReceiveCount":"?2`)
		if n := len(awaitObserver(t, journal, "both attempts", 2, posts("refuse"))); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
	row(t, "A57", func(t *testing.T) { matches(t, s.started.QueueURL, "/shop$") })
	row(t, "B20", func(t *testing.T) { matches(t, own["QueueArn"], ":shop$") })
	row(t, "A58", func(t *testing.T) {
		if own["FifoQueue"] != "" || strings.HasSuffix(s.started.QueueURL, ".fifo") {
			t.Errorf("the queue is %v", own)
		}
	})
	row(t, "A32", func(t *testing.T) { matches(t, tasks, `^backup-job `) })
	row(t, "B11", func(t *testing.T) { matches(t, described, `cron\.yaml`) })
	row(t, "A33", func(t *testing.T) {
		matches(t, tasks, `^backup-job +every 12 hours UTC `)
		matches(t, tasks, `^audit +every day at 23:00 UTC `)
	})
	row(t, "A36", func(t *testing.T) {
		next := asked.Truncate(12 * time.Hour).Add(12 * time.Hour)
		matches(t, tasks, `^backup-job .* `+next.Format("2006-01-02 15:04")+" UTC")
	})
	row(t, "A37", func(t *testing.T) {
		next := asked.Truncate(24 * time.Hour).Add(23 * time.Hour)
		if !next.After(asked) {
			next = next.Add(24 * time.Hour)
		}
		matches(t, tasks, `^audit .* `+next.Format("2006-01-02 15:04")+" UTC")
	})
	expect(t, "A35", backup.URI, "/backup")
	expect(t, "B14", audited.URI, "/audit")
	expect(t, "A78", backup.URI+audited.URI, "/backup/audit")
	expect(t, "A45", backup.Header.Get("X-Aws-Sqsd-Taskname"), "backup-job")
	row(t, "A47", func(t *testing.T) {
		if got := backup.Header.Get("X-Aws-Sqsd-Sender-Id") + first.Header.Get("X-Aws-Sqsd-Sender-Id"); got != "000000000000000000000000" {
			t.Errorf("the senders are %s", got)
		}
	})
	expect(t, "B3", begun.Parent, s.cmd.Process.Pid)
	expect(t, "B6", first.From, "127.0.0.1")
	row(t, "B5", func(t *testing.T) {
		ports, requests := map[string]bool{}, 0
		for _, s := range readObserver(t, journal) {
			if s.Event == "post" {
				ports[s.Port] = true
				requests++
			}
		}
		if len(ports) >= requests {
			t.Errorf("%d requests came over %d connections", requests, len(ports))
		}
	})
	row(t, "B1", func(t *testing.T) {
		eventually(t, "health has a status and the failed message", func() bool {
			out, _ := s.do("health")
			return regexp.MustCompile(`Ok|Info|Warning|Degraded|Severe`).MatchString(out) &&
				regexp.MustCompile(`4xx|failed|dead|422`).MatchString(out)
		})
	})
	row(t, "B18", func(t *testing.T) { matches(t, described, `URL +http://[^ ]+/shop$`) })
	row(t, "C10", func(t *testing.T) {
		text, err := os.ReadFile(pidFile)
		if err != nil || strings.TrimSpace(string(text)) != fmt.Sprint(begun.PID) {
			t.Errorf("the PID file has %q, %v; the app is %d", text, err, begun.PID)
		}
	})
	row(t, "C12", func(t *testing.T) {
		names, _ := filepath.Glob(filepath.Join(logs, "*"))
		all := ""
		for _, name := range names {
			text, _ := os.ReadFile(name)
			all += string(text)
		}
		matches(t, all, "the observer begins")
	})
	row(t, "C18", func(t *testing.T) {
		if !slices.Contains(begun.Env, "GREETING=hello") {
			t.Errorf("the app's variables are %v", begun.Env)
		}
	})
	row(t, "C29", func(t *testing.T) {
		text, _ := os.ReadFile(hooks)
		matches(t, string(text), `^prebuild-1 hello `)
	})
	row(t, "C25", func(t *testing.T) {
		matches(t, s.must("get-config", "environment"), `^{"[^ ]*"GREETING":"hello"`)
		matches(t, s.must("get-config", "optionsettings", "-n", "aws:elasticbeanstalk:sqsd", "-o", "HttpConnections"), "^7$")
		matches(t, s.must("get-config", "container", "-k", "app_deploy_dir"), "^/")
	})
	row(t, "C21", func(t *testing.T) {
		var text []byte
		eventually(t, "all hooks ran", func() bool {
			text, _ = os.ReadFile(hooks)
			return strings.Count(string(text), "\n") >= 4
		})
		matches(t, string(text), `^prebuild-1 hello 0\nprebuild-2 hello 0\npredeploy hello 0\npostdeploy hello [1-9]`)
	})
	row(t, "A18", func(t *testing.T) {
		if first.Header.Get("X-Aws-Sqsd-Msgid") != id {
			t.Errorf("the message id is %v", first.Header)
		}
	})
	t.Run("changes", func(t *testing.T) {
		finish := filepath.Join(t.TempDir(), "finish")
		job := "until " + finish
		sendBody(t, s.started, job)
		awaitObserver(t, journal, "the job began", 1, posts(job))
		files["Procfile"] = observerLine(journal, "2")
		next := writeBundle(t, files)
		s.must("deploy", next)
		second := awaitObserver(t, journal, "the new version began", 1, func(s seenByObserver) bool {
			return s.Event == "start" && s.Version == "2"
		})[0]
		sendBody(t, s.started, "after")
		after := awaitObserver(t, journal, "a message after it", 1, posts("after"))[0]
		if err := os.WriteFile(finish, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		done := awaitObserver(t, journal, "the job ended", 1, func(s seenByObserver) bool { return s.Event == "done" && s.Body == job })
		expect(t, "C22", done[0].Version, "1")
		row(t, "C19", func(t *testing.T) {
			if after.Version != "2" || second.PID == begun.PID {
				t.Errorf("after the deployment version %s works, pid %d", after.Version, second.PID)
			}
		})
		row(t, "C20", func(t *testing.T) {
			replaceIn(t, filepath.Join(next, ".ebextensions/worker.config"), "GREETING: hello", "GREETING: welcome")
			s.must("reload")
			awaitObserver(t, journal, "the app was started with the new setting", 1, func(s seenByObserver) bool {
				return s.Event == "start" && slices.Contains(s.Env, "GREETING=welcome")
			})
			eventually(t, "the hooks of a change of settings ran", func() bool {
				text, _ := os.ReadFile(hooks)
				return strings.Contains(string(text), "confighook welcome") && strings.Contains(string(text), "confighook-post welcome")
			})
		})
		row(t, "C13", func(t *testing.T) {
			before := len(readObserver(t, journal))
			sendBody(t, s.started, "crash")
			eventually(t, "the app was started again", func() bool {
				return slices.ContainsFunc(readObserver(t, journal)[before:], func(s seenByObserver) bool { return s.Event == "start" })
			})
			awaitObserver(t, journal, "the message came again", 2, posts("crash"))
		})
	})
}
