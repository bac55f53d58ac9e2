package tendril_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packageRule is a package, the first sentence of its documentation, and the packages of this module that it may
// import. Few imports keep the packages independent.
type packageRule struct {
	name, sentence string
	mayImport      []string
}

// packages is the architecture, in the order in which messages pass through the packages. Adding a package or an import
// is a design decision: change this table in the same commit and give the reason in docs/decisions.
var packages = []packageRule{
	{"queue", "Package queue defines the types that every other package shares.", nil},
	{"internal/sqsapi/sqswire", "Package sqswire holds the encoding shared by clients and servers of SQS.", []string{"queue"}},
	{"internal/host/terminal", "Package terminal makes text safe to print on a terminal.", nil},
	{"internal/host/trust", "Package trust checks whether other users control the contents of a file.", nil},
	{"internal/host/connpool", "Package connpool keeps unused client connections, and checks before reuse that the server has not " +
		"closed them.", nil},
	{"internal/host/datadir", "Package datadir creates the data directory, and opens and replaces files in it.", []string{"internal/host/trust"}},
	{"internal/host/httplimit", "Package httplimit limits the connections, requests and memory that clients of an HTTP server can occupy.",
		[]string{"queue"}},
	{"internal/observe/event", "Package event defines the events of an environment, such as deployments and pauses.", nil},
	{"internal/observe/eventlog", "Package eventlog stores the events of an environment on disk and the last lines of its log in memory.", []string{"internal/host/datadir", "internal/observe/event"}},
	{"internal/host/listen", "Package listen opens the addresses and sockets that servers listen on.", nil},
	{"internal/host/proof", "Package proof makes servers prove that they know a secret before a client sends it.", nil},
	{"internal/access", "Package access decides who may call the queue endpoint, and for what.",
		[]string{"queue", "internal/host/datadir", "internal/host/trust"}},
	{"internal/registry", "Package registry keeps the records that instances share: leases, tasks, scheduled runs and pauses.",
		[]string{"queue"}},
	{"internal/registry/registrytest", "Package registrytest checks implementations of a registry.",
		[]string{"queue", "internal/registry"}},
	{"broker", "Package broker is a durable queue that behaves like SQS.",
		[]string{"queue", "internal/host/datadir", "internal/access", "internal/registry"}},
	{"internal/testing/faultfs", "Package faultfs is a file system for SQLite that injects failures and simulates the loss of " +
		"unsynced writes.", nil},
	{"internal/sqsapi", "Package sqsapi serves a broker over the SQS wire protocol.",
		[]string{"queue", "broker", "internal/sqsapi/sqswire", "internal/access", "internal/host/proof", "internal/registry"}},
	{"internal/observe/window", "Package window counts recent events in buckets of equal length.", nil},
	{"internal/worker", "Package worker polls queues, delivers each message and settles it.", []string{"queue", "internal/observe/window"}},
	{"internal/delivery/webhook", "Package webhook signs POSTs according to Standard Webhooks 1.0.0.", nil},
	{"internal/delivery/deliver", "Package deliver sends messages to an app over HTTP or to a Lambda function.",
		[]string{"queue", "internal/host/connpool", "internal/sqsapi/sqswire", "internal/delivery/webhook"}},
	{"internal/observe/logging", "Package logging prints events and deliveries as text for a terminal, as JSON, or in the format of aws-sqsd.",
		[]string{"queue", "internal/host/terminal", "internal/worker", "broker", "internal/aws", "internal/delivery/limit", "internal/observe/event"}},
	{"internal/delivery/envelope", "Package envelope unwraps messages that contain another message: SNS notifications and pointers to S3 " +
		"objects.", []string{"queue"}},
	{"internal/delivery/filter", "Package filter selects the messages to deliver by patterns.", []string{"queue"}},
	{"internal/delivery/limit", "Package limit protects the app with a rate limit, an adaptive concurrency limit and a circuit breaker.",
		[]string{"queue"}},
	{"internal/supervisor/procgroup",
		"Package procgroup starts processes in their own process groups, which are killed when tendril exits.", nil},
	{"internal/delivery/runtimeapi", "Package runtimeapi runs a Lambda function on this machine behind the Lambda Runtime API.",
		[]string{"queue", "internal/supervisor", "internal/host/httplimit"}},
	{"internal/config/yamlfile", "Package yamlfile reads the small YAML files that people write, with the place of every value.", nil},
	{"internal/cron/periodic", "Package periodic determines when tasks are due and enqueues them.",
		[]string{"queue", "internal/config/yamlfile", "internal/registry"}},
	{"internal/cron/leader", "Package leader elects at most one leader using a lease.", []string{"queue"}},
	{"internal/supervisor", "Package supervisor runs the user's app and keeps it healthy.", []string{"internal/supervisor/procgroup", "internal/host/terminal"}},
	{"internal/autoscale", "Package autoscale turns backlog and load into a desired size.", []string{"internal/observe/event"}},
	{"internal/instances", "Package instances records every instance of an environment in the shared registry, and reads the records of the others.",
		[]string{"queue", "internal/autoscale", "internal/observe/health"}},
	{"internal/archives", "Package archives stores the archives of app versions where all instances of an environment can fetch them.",
		[]string{"queue"}},
	{"internal/autoscale/fleet", "Package fleet makes this process a member of a group of instances that share a queue.",
		[]string{"queue", "internal/autoscale", "internal/aws"}},
	{"internal/observe/health", "Package health turns the reports of all parts into one status, one color and its causes.", []string{"internal/observe/event", "internal/observe/window"}},
	{"internal/observe/series", "Package series records the time series for the overview page of the console.", []string{"internal/observe/health"}},
	{"internal/delivery", "Package delivery passes a worker's messages to their target through a chain of stages.",
		[]string{"queue", "internal/worker", "internal/delivery/deliver", "internal/delivery/envelope", "internal/cron/periodic", "internal/observe/telemetry", "internal/supervisor", "internal/delivery/runtimeapi", "internal/autoscale"}},
	{"internal/observe/telemetry", "Package telemetry turns events into metrics and traces.",
		[]string{"queue", "internal/worker", "internal/delivery/deliver", "internal/cron/periodic", "internal/cron/leader", "internal/supervisor", "broker", "internal/aws"}},
	{"internal/cloud/alarms", "Package alarms describes the CloudWatch alarms and the dashboard of an environment.",
		[]string{"internal/bundle", "internal/observe/telemetry", "internal/config/yamlfile"}},
	{"internal/bundle", "Package bundle reads an Elastic Beanstalk source bundle.", []string{"internal/host/datadir", "internal/host/trust", "internal/config/yamlfile"}},
	{"internal/bundle/machine", "Package machine applies the sections of a bundle that change the machine.", []string{"internal/bundle"}},
	{"internal/config", "Package config loads the settings, tracks the origin of each, and rejects invalid ones with advice.",
		[]string{"internal/bundle", "internal/host/datadir", "internal/delivery/filter", "internal/host/trust", "internal/delivery/webhook", "internal/config/yamlfile"}},
	{"internal/cli/scaffold", "Package scaffold generates a Procfile and a tendril.yaml for the app in a folder.", []string{"internal/bundle", "internal/config"}},
	{"internal/bundle/getconfig", "Package getconfig implements Elastic Beanstalk's get-config tool for scripts.",
		[]string{"internal/host/datadir"}},
	{"internal/supervisor/notify", "Package notify tells systemd about the state of the service.", nil},
	{"internal/aws", "Package aws contains the clients for AWS, which no other package calls.",
		[]string{"queue", "internal/host/connpool", "internal/registry", "internal/sqsapi/sqswire"}},
	{"internal/cloud", "Package cloud creates, lists and deletes an environment's AWS resources.",
		[]string{"queue", "internal/aws", "internal/config", "internal/cron/periodic", "internal/observe/telemetry"}},
	{"internal/observe/doctor", "Package doctor turns facts about an environment and its machine into findings with remedies.",
		[]string{"queue"}},
	{"internal/migrate", "Package migrate moves all messages of a queue to another and accounts for each.",
		[]string{"queue", "internal/host/datadir"}},
	{"internal/cli/generate", "Package generate writes deployment files: systemd units, a Dockerfile, and files for Docker " +
		"Compose, Kubernetes and KEDA.", []string{"internal/config/yamlfile"}},
	{"internal/testing/losscheck", "Package losscheck detects messages that a queue lost, invented, duplicated or resurrected.", nil},
	{"internal/testing/testpeer", "Package testpeer provides tests with the third-party programs they run against.", nil},
	{"queuetest", "Package queuetest checks implementations of a queue.", []string{"queue"}},
	{"api", "Package api holds the JSON types and a client of a running environment's console API, /api/v1.",
		[]string{"queue", "internal/host/terminal", "internal/host/datadir", "internal/host/proof", "internal/autoscale", "internal/observe/health",
			"internal/observe/series", "internal/observe/eventlog", "internal/observe/doctor"}},
	{"internal/peers", "Package peers reads the details of an environment's other instances from their consoles.",
		[]string{"api", "internal/instances"}},
	{"internal/console/tokens", "Package tokens stores a console's access tokens in the data directory.",
		[]string{"api", "internal/host/datadir"}},
	{"internal/console", "Package console serves the JSON API that inspects and controls a running environment.",
		[]string{"queue", "api", "internal/console/tokens", "broker", "internal/cron/periodic", "internal/observe/health", "internal/autoscale",
			"internal/observe/series", "internal/observe/eventlog", "internal/observe/doctor", "internal/host/proof", "internal/observe/event"}},
	{"internal/console/web", "Package web serves the web pages of the console.",
		[]string{"queue", "api", "internal/host/terminal", "internal/console", "internal/observe/health", "internal/observe/series", "internal/observe/eventlog", "internal/observe/event"}},
	{"internal/app", "Package app runs the app: its replicas, their deliveries and its deployments.",
		[]string{"queue", "internal/host/datadir", "internal/delivery/deliver", "internal/supervisor", "internal/bundle", "internal/config", "internal/supervisor/notify", "api", "internal/bundle/machine", "internal/observe/event"}},
	{"internal/cron/tasks", "Package tasks runs the periodic tasks of one environment.",
		[]string{"queue", "internal/host/datadir", "broker", "internal/sqsapi", "internal/aws", "internal/cron/periodic", "internal/cron/leader", "internal/registry", "api", "internal/host/proof", "internal/config/yamlfile", "internal/observe/event"}},
	{"internal/environment", "Package environment builds every part of a worker environment, starts them in order and stops " +
		"them in reverse.",
		[]string{"queue", "internal/host/terminal", "internal/host/datadir", "internal/host/listen", "internal/host/httplimit", "internal/access", "broker", "internal/sqsapi", "internal/worker", "internal/delivery/deliver",
			"internal/cron/periodic", "internal/cron/leader", "internal/supervisor", "internal/bundle", "internal/config", "internal/aws", "api", "internal/console", "internal/console/tokens", "internal/console/web", "internal/delivery/envelope", "internal/delivery/limit",
			"internal/delivery/runtimeapi", "internal/observe/telemetry", "internal/autoscale", "internal/autoscale/fleet", "internal/instances", "internal/peers", "internal/archives", "internal/delivery", "internal/observe/health", "internal/observe/series", "internal/app", "internal/supervisor/notify", "internal/host/trust",
			"internal/observe/logging", "internal/cron/tasks", "internal/cloud", "internal/bundle/getconfig", "internal/observe/eventlog", "internal/observe/doctor", "internal/delivery/filter", "internal/observe/event"}},
	{"internal/testing/simulation", "Package simulation runs whole environments in virtual time, with faults derived from a seed.", nil},
	{"internal/cli/base", "Package base holds the code shared by the commands.",
		[]string{"api", "internal/bundle", "internal/cli/scaffold", "internal/cloud/alarms", "internal/config",
			"internal/config/yamlfile", "internal/cron/periodic", "internal/environment", "internal/host/terminal",
			"internal/host/trust", "internal/observe/health", "internal/observe/logging", "queue"}},
	{"internal/cli/deploy", "Package deploy changes the version, processes and settings of a running app.",
		[]string{"api", "internal/bundle", "internal/cli/base"}},
	{"internal/cli/target", "Package target finds the queue named on the command line.",
		[]string{"api", "internal/aws", "internal/cli/base", "queue"}},
	{"internal/cli/queues", "Package queues lists, creates, purges, deletes, pauses and resumes queues.",
		[]string{"api", "internal/aws", "internal/cli/base", "internal/cli/target", "queue"}},
	{"internal/cli/tasks", "Package tasks lists, runs, pauses and resumes periodic tasks.",
		[]string{"api", "internal/cli/base", "internal/host/terminal"}},
	{"internal/cli/inspect", "Package inspect reports the state and history of environments.",
		[]string{"api", "internal/bundle", "internal/cli/base", "internal/cli/deploy", "internal/cli/queues",
			"internal/cli/tasks", "internal/config", "internal/config/yamlfile", "internal/host/terminal",
			"internal/observe/doctor", "internal/observe/event", "internal/observe/eventlog", "internal/observe/health",
			"internal/observe/series"}},
	{"internal/cli/keys", "Package keys manages the tokens of the console and the key pairs of the endpoint.",
		[]string{"api", "internal/access", "internal/cli/base", "internal/config", "internal/console/tokens"}},
	{"internal/cli/send", "Package send sends messages and reports their outcome.",
		[]string{"api", "internal/cli/base", "internal/cli/target", "internal/host/terminal", "queue"}},
	{"internal/cli/messages", "Package messages lists, receives, moves, deletes and replays messages.",
		[]string{"api", "internal/aws", "internal/cli/base", "internal/cli/send", "internal/cli/target", "internal/config",
			"internal/config/yamlfile", "internal/environment", "internal/host/terminal", "queue"}},
	{"internal/cli/provision", "Package provision prints deployment files, and deletes the AWS resources of an environment.",
		[]string{"internal/aws", "internal/bundle", "internal/cli/base", "internal/cli/generate", "internal/cli/target",
			"internal/cloud", "internal/cloud/alarms", "internal/config", "internal/config/yamlfile",
			"internal/cron/tasks", "internal/environment", "queue"}},
	{"internal/cli/run", "Package run starts environments: up, serve and init.",
		[]string{"api", "internal/bundle", "internal/cli/base", "internal/cli/scaffold", "internal/config", "internal/environment",
			"internal/host/terminal", "internal/observe/event", "internal/observe/logging", "internal/supervisor"}},
	{"internal/cli/settings", "Package settings checks, explains and changes settings.",
		[]string{"api", "internal/bundle", "internal/bundle/getconfig", "internal/bundle/machine", "internal/cli/base",
			"internal/cli/inspect", "internal/cli/provision", "internal/config",
			"internal/config/yamlfile", "internal/cron/tasks", "internal/environment", "internal/host/terminal", "queue"}},
	{"internal/cli/transfer", "Package transfer copies queues to and from Amazon SQS and backups.",
		[]string{"api", "broker", "internal/aws", "internal/cli/base", "internal/cli/target", "internal/config",
			"internal/config/yamlfile", "internal/migrate", "queue"}},
	{"internal/cli", "Package cli implements the tendril command.",
		[]string{"api", "internal/cli/base", "internal/cli/deploy", "internal/cli/inspect", "internal/cli/keys",
			"internal/cli/messages", "internal/cli/provision", "internal/cli/queues", "internal/cli/run",
			"internal/cli/send", "internal/cli/settings", "internal/cli/tasks", "internal/cli/transfer",
			"internal/config", "internal/host/terminal"}},
	{"internal/testing/pseudoterminal", "Package pseudoterminal provides tests with a terminal to type on and read from.", nil},
	{"cmd/tendril", "Command tendril is a worker environment in one binary.",
		[]string{"internal/cli", "internal/cli/base", "internal/cli/run"}},
}

// restricted lists libraries that only some packages may import.
var restricted = []struct {
	prefix, packages, why string
}{
	{"github.com/aws/", "internal/aws",
		"the cloud SDK stays behind package aws: declare a small interface where you need it and let aws fill it"},
	{"modernc.org/sqlite", "broker internal/testing/faultfs", "the database stays behind package broker"},
	{"github.com/failsafe-go/", "internal/delivery/limit", "the library of limits is not at 1.0 yet: it stays behind package limit"},
	{"golang.org/x/time/rate", "internal/delivery/limit internal/supervisor internal/cli/messages",
		"limits of messages are kept in package limit, of the app's output in supervisor, of a redrive in the command"},
	{"github.com/go-json-experiment/", "internal/sqsapi internal/sqsapi/sqswire internal/delivery/filter",
		"the JSON of the SQS protocol is read and written there, and the bodies of messages are searched"},
	{"github.com/prometheus/client_golang", "internal/observe/telemetry",
		"no step knows a metrics library: it has Events, and telemetry listens"},
	{"go.opentelemetry.io/", "internal/observe/telemetry", "no step knows a tracing library: it has Events, and telemetry listens"},
	{"github.com/coreos/go-systemd", "internal/supervisor/notify", "only one package speaks to the service manager: call it there"},
	{"github.com/spf13/cobra", "internal/cli internal/cli/base internal/cli/deploy internal/cli/inspect internal/cli/keys internal/cli/messages internal/cli/provision internal/cli/queues internal/cli/run internal/cli/send internal/cli/settings internal/cli/target internal/cli/tasks internal/cli/transfer",
		"flags and exit codes live in the command only"},
	{"github.com/goccy/go-yaml", "internal/config/yamlfile", "files that people write are read there and nowhere else"},
}

type sourceFile struct {
	path, pkg string
	test      bool
	file      *ast.File
	fset      *token.FileSet
}

func sources(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." &&
				(strings.HasPrefix(name, ".") || name == "testdata" || name == "tools" || name == "out") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files,
			sourceFile{path, filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go"), f, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// inProduct excludes examples and benchmarks, which are separate programs, and tests of whole programs and files.
func (s sourceFile) inProduct() bool {
	return s.pkg != "." && !strings.HasPrefix(s.pkg, "bench") && s.pkg != "acceptance" && s.pkg != "deploy" &&
		!strings.HasPrefix(s.pkg, "examples")
}

func TestEveryPackageIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, r := range packages {
		known[r.name] = true
		data, err := os.ReadFile(filepath.Join(r.name, "doc.go"))
		if err != nil {
			t.Errorf("%s: every package opens with a doc.go: %v", r.name, err)
			continue
		}
		if want := "// " + r.sentence; !strings.HasPrefix(oneLine(string(data)), want) {
			t.Errorf("%s/doc.go must open with %q", r.name, want)
		}
	}
	for _, s := range sources(t) {
		if s.inProduct() && !known[s.pkg] {
			t.Errorf("%s: package %s is not in the table of packages; add it there with its sentence and what it may import",
				s.path, s.pkg)
		}
	}
}

func oneLine(src string) string {
	paragraph, _, _ := strings.Cut(src, "\n//\n")
	return strings.ReplaceAll(paragraph, "\n// ", " ")
}

func TestImportsFollowTheTable(t *testing.T) {
	mayImport := map[string][]string{}
	for _, r := range packages {
		mayImport[r.name] = r.mayImport
	}
	for _, s := range sources(t) {
		if s.test || !s.inProduct() {
			continue
		}
		for _, spec := range s.file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(path, "tendril/"); ok && !slices.Contains(mayImport[s.pkg], own) {
				t.Errorf("%s imports %s; package %s may import %v: declare the one to three methods you need here and let "+
					"environment plug them together",
					s.path, path, s.pkg, mayImport[s.pkg])
			}
			for _, l := range restricted {
				if strings.HasPrefix(path, l.prefix) && !slices.Contains(strings.Fields(l.packages), s.pkg) {
					t.Errorf("%s imports %s: %s", s.path, path, l.why)
				}
			}
		}
	}
}

func TestNoSleepInTests(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || !s.inProduct() || importsSynctest(s.file) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && x.Sel.Name == "Sleep" {
				if id, ok := x.X.(*ast.Ident); ok && id.Name == "time" {
					t.Errorf("%s: tests do not sleep: wait for an event, or use virtual time (testing/synctest)",
						s.fset.Position(x.Pos()))
				}
			}
			return true
		})
	}
}

func importsSynctest(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

// Without m.Run, a package would pass without running its tests.
func TestEachTestMainRunsTheTests(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			main, ok := d.(*ast.FuncDecl)
			if !ok || main.Name.Name != "TestMain" {
				continue
			}
			runs := false
			ast.Inspect(main.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				runs = runs || ok && slices.Contains([]string{"Run", "VerifyTestMain", "Main"}, call.Sel.Name)
				return true
			})
			if !runs {
				t.Errorf("%s: call Run, goleak.VerifyTestMain or testscript.Main in TestMain", s.path)
			}
		}
	}
}

// Packages whose tests can start processes must run them with testpeer.Contained.
func TestTestsThatStartProcessesAreContained(t *testing.T) {
	starts, contained := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, i := range s.file.Imports {
			if i.Path.Value == `"os/exec"` || i.Path.Value == `"tendril/internal/testing/testpeer"` {
				starts[s.pkg] = s.path
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "Contained" {
				contained[s.pkg] = true
			}
			return true
		})
	}

	for pkg, path := range starts {
		if !contained[pkg] {
			t.Errorf("%s can start processes: have TestMain of %s run testpeer.Contained(m)", path, pkg)
		}
	}
}
