package acceptance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/aws"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/testing/testpeer"
)

type foreignServers struct {
	queue, table string
	messages     int
	// repeats means that concurrent receives may return the same message, or fail after the receive was counted.
	repeats bool
	// taskless means that the registry lacks transactions, so it cannot store tasks.
	taskless bool
}

func TestWorkerOnForeignServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers start slowly: not with -short")
	}
	for _, c := range []struct {
		name  string
		start func(t *testing.T) foreignServers
	}{
		{"moto", func(t *testing.T) foreignServers {
			endpoint := testpeer.Moto(t, "sqs", "dynamodb")
			return foreignServers{queue: endpoint, table: oneAtATime(t, endpoint), repeats: true,
				messages: testpeer.Size(100, 500)} // the server slows down with the number of messages
		}},
		{"ElasticMQ and MiniStack", func(t *testing.T) foreignServers {
			return foreignServers{queue: testpeer.ElasticMQ(t), table: testpeer.MiniStack(t), messages: 500}
		}},
		{"MiniStack and dynalite", func(t *testing.T) foreignServers {
			return foreignServers{queue: testpeer.MiniStack(t), table: testpeer.Dynalite(t), messages: 500, taskless: true}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runWorkers(t, c.start(t))
		})
	}
}

func runWorkers(t *testing.T, servers foreignServers) {
	setCredentials()
	const failing, terminal, receives = 10, 10, 2
	good := servers.messages - failing - terminal
	c := client(servers.queue)
	deadURL := createQueue(t, c, "jobs-dead", nil)
	arn := attributes(t.Context(), t, c, deadURL)["QueueArn"]
	url := createQueue(t, c, "jobs", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn, receives)})
	due := leaveRuns(t, servers.table, "jobs", 3)
	preload(t, c, url, good, func(i int) string { return fmt.Sprint("good ", i) })
	preload(t, c, url, failing, func(i int) string { return fmt.Sprint("failing ", i) })
	preload(t, c, url, terminal, func(i int) string { return fmt.Sprint("terminal ", i) })

	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
		switch word, _, _ := strings.Cut(p.body, " "); word {
		case "failing":
			w.WriteHeader(http.StatusInternalServerError)
		case "terminal":
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	cron := filepath.Join(t.TempDir(), "cron.yaml")
	if err := os.WriteFile(cron, []byte("version: 1\ncron:\n  - name: report\n    url: /report\n"+
		"    schedule: \"* * * * *\"\n    missed: all\n    grace: 30m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var workers []*process
	for range 2 {
		env := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + servers.table, "AWS_ENDPOINT_URL_SQS=" + servers.queue}
		p, _ := startWith(t, env, "up", "--queue-url", url, "--target", app.URL, "--cron", cron,
			"--registry-table", amazonTable, "--terminal-codes", "422", "--error-visibility-timeout", "0",
			"--wait-time", "2", "--visibility-timeout", "10", "--cloudwatch", "off", "--console", "off")
		workers = append(workers, p)
	}
	dead := awaitDead(t, servers.queue, deadURL, failing+terminal)
	app.await(t, "everything was posted", func(all []posted) bool {
		return len(postsOf(all, "good")) == good && (servers.taskless || len(runsOf(all)) >= len(due)) &&
			empty(t, c, url)(all)
	})
	saidWhy := func(e event) bool { return strings.Contains(e.raw, "dynamodb:TransactWriteItems") }
	reported := func() bool { return workers[0].count(saidWhy)+workers[1].count(saidWhy) > 0 }
	if servers.taskless {
		eventually(t, "a worker says that the registry cannot claim a run", reported)
	}
	for _, p := range workers {
		if code := p.terminate(t); code != 0 {
			t.Errorf("a worker ended with status %d", code)
		}
	}
	all := app.all()
	for word, want := range map[string]struct{ bodies, posts int }{
		"good": {good, 1}, "failing": {failing, receives}, "terminal": {terminal, 1},
	} {
		posts := postsOf(all, word)
		if len(posts) != want.bodies {
			t.Errorf("%d %s messages were posted, want %d", len(posts), word, want.bodies)
		}
		for body, n := range posts {
			// moto may fail concurrent receives after counting them.
			if n != want.posts && !servers.repeats {
				t.Errorf("%q was posted %d times, want %d", body, n, want.posts)
			}
			if slices.Contains(dead, body) != (word != "good") {
				t.Errorf("%q is among the dead letters: %v", body, slices.Contains(dead, body))
			}
		}
	}
	runs := runsOf(all)
	for _, at := range due {
		if (runs[at] == 0) != servers.taskless {
			t.Errorf("the run of %s was posted %d times", at, runs[at])
		}
	}
	for at, n := range runs {
		if n > 1 && !servers.repeats {
			t.Errorf("the run of %s was posted %d times", at, n)
		}
	}
	if reported() && !servers.taskless {
		t.Error("a worker said that the registry cannot claim a run")
	}
	t.Logf("%d POSTs, %d dead letters, %d runs", len(all), len(dead), len(runs))
}

// leaveRuns writes a registry as if its task had not run for n minutes.
func leaveRuns(t *testing.T, endpoint, queueName string, n int) (due []string) {
	t.Helper()
	table, err := aws.OpenTable(t.Context(), amazonTable, &aws.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if err := table.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Minute)
	for i := range n {
		due = append(due, now.Add(-time.Duration(n-1-i)*time.Minute).Format(time.RFC3339))
	}
	left := map[string]registry.Start{"report": {At: now.Add(-time.Duration(n) * time.Minute)}}
	if _, err := registry.NewSentRuns(table, registry.Scope{Name: periodic.LeaseName(queueName)}, nil, nil).Since(t.Context(), 0, left); err != nil {
		t.Fatal(err)
	}
	return due
}

func postsOf(all []posted, word string) map[string]int {
	posts := map[string]int{}
	for _, p := range all {
		if strings.HasPrefix(p.body, word+" ") {
			posts[p.body]++
		}
	}
	return posts
}

func runsOf(all []posted) map[string]int {
	runs := map[string]int{}
	for _, p := range all {
		if p.location == "/report" {
			runs[p.header.Get("X-Aws-Sqsd-Scheduled-At")]++
		}
	}
	return runs
}

func awaitDead(t *testing.T, endpoint, url string, n int) (bodies []string) {
	t.Helper()
	sqs, err := aws.OpenSQS(t.Context(), &aws.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sqs.Close)
	q, err := sqs.Queue(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); len(bodies) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("within two minutes %d of %d dead letters came", len(bodies), n)
		}
		for _, m := range takeAll(t, q) {
			if !slices.Contains(bodies, m.Body) {
				bodies = append(bodies, m.Body)
			}
		}
	}
	return bodies
}
