package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func serveApp() error {
	journal, err := os.OpenFile(os.Getenv("ACCEPTANCE_JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	deaths, err := os.OpenFile(deathsOf(journal.Name()), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	version := os.Getenv("ACCEPTANCE_VERSION")
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		switch word, _, _ := strings.Cut(string(body), " "); word {
		case "poison":
			time.Sleep(time.Millisecond)
			fmt.Fprintln(deaths, r.Header.Get("X-Aws-Sqsd-Msgid"))
			os.Exit(1)
		case "hog":
			for memory := []byte{1}; ; {
				memory = append(memory, memory...)
			}
		case "stuck":
			time.Sleep(time.Hour)
		case "flaky":
			if r.Header.Get("X-Aws-Sqsd-Receive-Count") == "1" {
				http.Error(w, "not yet", http.StatusServiceUnavailable)
				return
			}
		case "refuse":
			http.Error(w, "missing customer "+string(body[len("refuse "):]), http.StatusUnprocessableEntity)
			return
		default:
			if work, err := time.ParseDuration(word); err == nil {
				time.Sleep(work)
			}
		}
		fmt.Fprintf(journal, "%s %s\n", version, r.Header.Get("X-Aws-Sqsd-Msgid")) // a single, atomic write
	})
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: mux}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-term:
		return nil // tendril stops a replica only once its work is done
	}
}

func deathsOf(journal string) string {
	if journal == os.DevNull {
		return journal
	}
	return journal + ".deaths"
}

func appLine(journal, version string) string {
	return fmt.Sprintf("web: ACCEPTANCE_ROLE=app ACCEPTANCE_JOURNAL=%s ACCEPTANCE_VERSION=%s exec %s\n", journal,
		version, os.Args[0])
}

func writeBundle(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readJournal(t *testing.T, path string) (times map[string]int, versions map[string]int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	times, versions = map[string]int{}, map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		version, id, _ := strings.Cut(lines.Text(), " ")
		times[id]++
		versions[version]++
	}
	return times, versions
}
