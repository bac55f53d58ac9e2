package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/console/tokens"
	"tendril/internal/observe/event"
	"tendril/internal/testing/testpeer"
)

// The kind of a command determines which flags it must support.
const (
	reading  = "reading"
	changing = "changing"
	neither  = "neither" // supports neither, for the reason in why
)

type commandRow struct {
	kind string
	args string // DEAD, DELAYED, DIR and CREDENTIALS stand for things that the suite creates
	code int    // exit status of a reading command
	why  string
}

// commandTable has every command. New commands need -o if they print something, and --dry-run if they change something.
var commandTable = map[string]commandRow{
	"check":                     {kind: reading, args: "DIR/app --name other"},
	"completion bash":           {kind: neither, why: "a script for the shell"},
	"completion fish":           {kind: neither, why: "a script for the shell"},
	"completion powershell":     {kind: neither, why: "a script for the shell"},
	"completion zsh":            {kind: neither, why: "a script for the shell"},
	"config schema":             {kind: neither, why: "a document in JSON"},
	"backup":                    {kind: changing, args: "DIR/backup.db"},
	"restore":                   {kind: changing, args: "DIR/backup.db"},
	"config set":                {kind: changing, args: "http-path=/b"},
	"config show":               {kind: reading},
	"config unset":              {kind: changing, args: "http-path"},
	"credentials create":        {kind: changing, args: "web --credentials CREDENTIALS"},
	"credentials list":          {kind: reading, args: "--credentials CREDENTIALS"},
	"credentials revoke":        {kind: changing, args: "ops --credentials CREDENTIALS"},
	"dead delete":               {kind: changing, args: "--all"},
	"dead export":               {kind: neither, why: "lines of JSON that 'send --ndjson' takes"},
	"dead list":                 {kind: reading},
	"dead reasons":              {kind: reading},
	"dead redrive":              {kind: changing, args: "DEAD"},
	"dead show":                 {kind: reading, args: "DEAD"},
	"deploy":                    {kind: changing, args: "DIR/two.zip"},
	"describe":                  {kind: reading},
	"doctor":                    {kind: reading},
	"drain":                     {kind: changing},
	"events":                    {kind: reading},
	"explain":                   {kind: reading, args: "http-path"},
	"generate alarms":           {kind: neither, why: "a file to deploy with"},
	"generate compose":          {kind: neither, why: "a file to deploy with"},
	"generate dashboard":        {kind: neither, why: "a file to deploy with"},
	"generate docker":           {kind: neither, why: "a file to deploy with"},
	"generate iam":              {kind: neither, why: "a file to deploy with"},
	"generate keda":             {kind: neither, why: "a file to deploy with"},
	"generate kubernetes":       {kind: neither, why: "a file to deploy with"},
	"generate systemd":          {kind: neither, why: "a file to deploy with"},
	"get-config addons":         {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"get-config container":      {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"get-config environment":    {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"get-config meta":           {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"get-config optionsettings": {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"get-config platformconfig": {kind: neither, why: "the output of Elastic Beanstalk's tool"},
	"health":                    {kind: reading, code: base.ExitFailed},
	"help":                      {kind: neither, why: "help"},
	"init":                      {kind: changing, args: "DIR/app"},
	"instances":                 {kind: reading},
	"logs":                      {kind: reading},
	"migrate":                   {kind: changing, args: "--from embedded --to sqs --data-dir DIR/old"},
	"message delay":             {kind: changing, args: "DELAYED --for 10m"},
	"message delete":            {kind: changing, args: "DELAYED"},
	"message retry":             {kind: changing, args: "DELAYED"},
	"message show":              {kind: reading, args: "DELAYED"},
	"open":                      {kind: neither, why: "a link that lets one browser in"},
	"peek":                      {kind: reading},
	"ps":                        {kind: reading},
	"queues":                    {kind: reading},
	"queues create":             {kind: changing, args: "mails --max-receives 3"},
	"queues delete":             {kind: changing, args: "scratch"},
	"queues list":               {kind: reading},
	"queues pause":              {kind: changing, args: "--reason test"},
	"queues purge":              {kind: changing, args: "one"},
	"queues resume":             {kind: changing, args: "one"},
	"queues show":               {kind: reading, args: "one"},
	"receive":                   {kind: changing, args: "one"},
	"reload":                    {kind: changing},
	"replay":                    {kind: changing, args: "DEAD"},
	"restart":                   {kind: changing, args: "web-2"},
	"rollback":                  {kind: changing},
	"scale":                     {kind: reading},
	"send":                      {kind: changing, args: "body"},
	"serve":                     {kind: neither, why: "it runs until it is ended"},
	"status":                    {kind: reading},
	"tasks":                     {kind: reading},
	"tasks history":             {kind: reading},
	"tasks list":                {kind: reading},
	"tasks pause":               {kind: changing, args: "tidy"},
	"tasks resume":              {kind: changing, args: "tidy"},
	"tasks run":                 {kind: changing, args: "tidy"},
	"terminate":                 {kind: changing, args: "--name old --data-dir DIR/old"},
	"tokens create":             {kind: changing, args: "ci --scope read"},
	"tokens list":               {kind: reading},
	"tokens revoke":             {kind: changing, args: "ops"},
	"top":                       {kind: neither, why: "a screen that moves"},
	"up":                        {kind: neither, why: "it runs until it is ended"},
	"version":                   {kind: neither, why: "one line, which programs get from status"},
	"versions":                  {kind: reading},
}

var nameFree = map[string]bool{"events": true}

func commandsOf(cmd *cobra.Command, into map[string]*cobra.Command) {
	for _, sub := range cmd.Commands() {
		path := strings.TrimPrefix(sub.CommandPath(), "tendril ")
		if _, listed := commandTable[path]; listed || !sub.HasSubCommands() {
			into[path] = sub
		}
		commandsOf(sub, into)
	}
}

func TestEveryCommandIsInTheTable(t *testing.T) {
	t.Parallel()
	root := cli.NewRoot((&base.CLI{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
	root.InitDefaultHelpCmd()
	found := map[string]*cobra.Command{}
	commandsOf(root, found)
	for path, cmd := range found {
		row, listed := commandTable[path]
		o, dry := cmd.Flags().Lookup(base.OutputFlag), cmd.Flags().Lookup(base.DryRunFlag)
		switch {
		case !listed:
			t.Errorf("%s is not in commandTable: enter what it is, and how it is called", path)
		case row.kind == reading && (o == nil || o.Value.Type() != "format"):
			t.Errorf("%s shows something and has no -o: see addOutput", path)
		case row.kind == changing && dry == nil:
			t.Errorf("%s changes something and has no --dry-run: see cli.changes", path)
		case row.kind == neither && (row.why == "" || dry != nil):
			t.Errorf("%s: why does it need neither -o nor --dry-run?", path)
		}
	}
	for path := range commandTable {
		if found[path] == nil {
			t.Errorf("unknown command %s: take it out of commandTable", path)
		}
	}
}

type printingSuite struct {
	*testing.T
	dir     string
	environ []string
	words   *strings.Replacer
}

func (s *printingSuite) tendril(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	var out, talk bytes.Buffer
	c := &base.CLI{In: strings.NewReader(""), Out: &out, Err: &talk, Environ: s.environ}
	code = cli.Execute(c, args)
	return out.String(), talk.String(), code
}

func (s *printingSuite) must(args ...string) string {
	s.Helper()
	out, talk, code := s.tendril(args...)
	if code != 0 {
		s.Fatalf("tendril %s: exit %d\n%s%s", strings.Join(args, " "), code, out, talk)
	}
	return strings.TrimSpace(out)
}

func TestPrintingOfEveryVerb(t *testing.T) {
	s := startPrintingSuite(t)
	for _, path := range slices.Sorted(maps.Keys(commandTable)) {
		row := commandTable[path]
		args := append(strings.Fields(path), strings.Fields(s.words.Replace(row.args))...)
		switch row.kind {
		case reading:
			t.Run(path, func(t *testing.T) { s.printsAll(t, path, args, row.code) })
		case changing:
			t.Run(path, func(t *testing.T) { s.changesNothing(t, args) })
		}
	}
	t.Run("refusals", s.refusesAlike)
}

func (s *printingSuite) printsAll(t *testing.T, path string, args []string, want int) {
	for _, f := range base.Formats {
		out, talk, code := s.tendril(append(args, "-o", f)...)
		if code != want {
			t.Errorf("-o %s: exit %d\n%s%s", f, code, out, talk)
			continue
		}
		switch base.Format(f) {
		case base.AsTable:
			if out == "" {
				t.Errorf("-o table printed nothing\n%s", talk)
			}
		case base.AsJSON:
			if !json.Valid([]byte(out)) {
				t.Errorf("-o json printed\n%s", out)
			}
		case base.AsYAML:
			var v any
			if err := yaml.Unmarshal([]byte(out), &v); err != nil || v == nil {
				t.Errorf("-o yaml printed, %v\n%s", err, out)
			}
		case base.AsName:
			if out == "" && !nameFree[path] {
				t.Errorf("-o name printed nothing\n%s", talk)
			}
			for line := range strings.Lines(out) {
				if strings.TrimSpace(line) == "" || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\t{") {
					t.Errorf("-o name printed %q", line)
				}
			}
		}
	}
	if _, talk, code := s.tendril(append(args, "-o", "toml")...); code != base.ExitUsage ||
		!strings.Contains(talk, "table, json, yaml or name") {
		t.Errorf("-o toml: exit %d, %s", code, talk)
	}
}

func (s *printingSuite) changesNothing(t *testing.T, args []string) {
	before := s.settledState()
	out, talk, code := s.tendril(append(args, "--dry-run")...)
	if code != 0 || !strings.Contains(talk, base.Unchanged) || !strings.Contains(out, "would ") && args[0] != "migrate" {
		t.Errorf("exit %d, printed\n%s%s", code, out, talk)
	}
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.settledState(), "\n")); diff != "" {
		t.Errorf("it changed something:\n%s", diff)
	}
}

func (s *printingSuite) refusesAlike(t *testing.T) {
	for _, args := range []string{
		"send body -q nothing", "queues purge nothing --yes", "queues delete nothing --yes",
		"queues delete one --yes", "receive nothing", "replay nothing", "deploy --abort",
		"queues pause nothing", "queues resume nothing",
		"queues create one -a VisibilityTimeout=7", "dead redrive nothing", "dead delete nothing --yes",
		"dead redrive --all -q nothing", "message retry nothing", "message delay nothing --for 1m", "message delete nothing",
		"message retry DEAD", "tasks run nothing", "tasks pause nothing", "tasks resume nothing", "rollback 99",
		"restart nothing",
		"deploy DIR/nothing", "config set nothing=1 --yes", "config set inactivity-timeout=soon --yes",
		"config unset nothing --yes",
		"tokens create ops --scope read", "tokens create x", "tokens revoke nothing",
		"credentials create ops --credentials CREDENTIALS", "credentials revoke nothing --credentials CREDENTIALS",
		"terminate --name one", "drain --wait -1s", "init DIR/nothing",
	} {
		words := strings.Fields(s.words.Replace(args))
		_, said, want := s.tendril(words...)
		if want == 0 {
			t.Fatalf("%s went well: it is to be refused", args)
		}
		if out, talk, code := s.tendril(append(words, "--dry-run")...); code != want {
			t.Errorf("%s: exit %d in a dry run, else %d\n%s%s\nelse\n%s", args, code, want, out, talk, said)
		}
	}
}

func (s *printingSuite) state() string {
	s.Helper()
	client, err := api.Dial(filepath.Join(s.dir, "data"))
	if err != nil {
		s.Fatal(err)
	}
	defer client.Close()
	client.Bodies = true
	var all bytes.Buffer
	add := func(v any, failed error) {
		s.Helper()
		if failed != nil {
			s.Fatal(failed)
		}
		if err := json.NewEncoder(&all).Encode(v); err != nil {
			s.Fatal(err)
		}
	}
	queues, err := client.Queues(s.Context())
	for i := range queues {
		queues[i].OldestSeconds = 0
	}
	add(queues, err)
	for i := range queues {
		messages, _, err := client.Messages(s.Context(), queues[i].Name, api.Filter{})
		for i := range messages {
			messages[i].VisibleAt = messages[i].VisibleAt.Round(time.Second)
		}
		add(messages, err)
	}
	tasks, err := client.Tasks(s.Context())
	add(tasks.Tasks, err)
	versions, err := client.Versions(s.Context())
	add(versions, err)
	settings, err := client.Configuration(s.Context())
	for _, o := range settings.Options {
		add(o.Name+"="+o.Value, err)
	}
	events, err := client.Events(s.Context(), api.EventFilter{Limit: 1000, Kinds: []string{string(event.Act)}})
	for _, e := range events {
		if e.Fields["method"] != http.MethodGet { // reads of bodies are audited, too
			add(e, err)
		}
	}
	status, err := client.Status(s.Context())
	add([]any{status.PID, status.State, status.Deployment}, err)
	for _, path := range []string{"tendril.yaml", "credentials.json", "data/" + tokens.Filename} {
		text, err := os.ReadFile(filepath.Join(s.dir, path))
		add(string(text), err)
	}
	old, err := broker.Open(filepath.Join(s.dir, "old"), nil)
	if err != nil {
		s.Fatal(err)
	}
	add(old.ListQueues(""), old.Close())
	return all.String()
}

func startPrintingSuite(t *testing.T) *printingSuite {
	dir := t.TempDir()
	for name, value := range map[string]string{"AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_CONFIG_FILE": filepath.Join(dir, "none"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "none"), "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	for path, text := range map[string]string{
		"app/Procfile": "web: testapp\n", "two/Procfile": "web: testapp\n", "tendril.yaml": "http_path: /a\n",
		"app/cron.yaml": "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 4 1 1 *\"}\n",
		"two/cron.yaml": "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 4 1 1 *\"}\n",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"app", "two"} {
		if err := zipFolder(filepath.Join(dir, name+".zip"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := &printingSuite{T: t, dir: dir, environ: append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir+"/state",
		"TENDRIL_DATA_DIR="+dir+"/data", "TENDRIL_LISTEN=127.0.0.1:0", "TENDRIL_CONSOLE=127.0.0.1:0",
		"TENDRIL_PORT="+testpeer.FreePort(t))}
	s.run()
	s.fill()
	return s
}

func (s *printingSuite) run() {
	up := exec.Command("tendril", "up", "app.zip", "--name", "one", "--max-retries", "1",
		"--error-visibility-timeout", "0")
	up.Dir, up.Env = s.dir, s.environ
	var log bytes.Buffer
	up.Stdout, up.Stderr = &log, &log
	if err := up.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := errors.Join(up.Process.Signal(syscall.SIGTERM), up.Wait()); err != nil {
			s.Errorf("the environment ended with %v\n%s", err, &log)
		}
	})
	s.wait(func() error {
		if out, talk, code := s.tendril("status", "-o", "json"); code != 0 || !strings.Contains(out, `"ready": true`) {
			return fmt.Errorf("exit %d\n%s%s", code, out, talk)
		}
		return nil
	})
}

func (s *printingSuite) wait(until func() error) {
	s.Helper()
	if err := poll(until); err != nil {
		s.Fatal(err)
	}
}

func (s *printingSuite) fill() {
	s.must("queues", "create", "scratch", "--no-dead-letter-queue")
	s.must("deploy", filepath.Join(s.dir, "two.zip"))
	s.must("send", "--wait", "-a", "kind=x", "fine")
	s.tendril("send", "--wait", "status 422 because broken")
	s.must("tasks", "run", "tidy")
	var dead string
	s.wait(func() error {
		if dead = s.must("dead", "list", "-o", "name"); dead == "" {
			return errors.New("nothing was dead-lettered")
		}
		if s.must("tasks", "history", "-o", "name") == "" || !strings.Contains(s.must("queues", "show"), "live 0") {
			return errors.New("the task has not run")
		}
		return nil
	})
	running, err := api.ReadInstance(filepath.Join(s.dir, "data"))
	if err != nil {
		s.Fatal(err)
	}
	s.Setenv("AWS_ENDPOINT_URL_SQS", running.Endpoint)
	due := time.Now().Add(time.Hour).Truncate(time.Second) // far from where state rounds
	delayed := s.must("send", "--at", due.Format(time.RFC3339), "later")
	credentials := filepath.Join(s.dir, "credentials.json")
	s.must("credentials", "create", "ops", "--credentials", credentials)
	s.must("tokens", "create", "ops", "--scope", "read")
	old := filepath.Join(s.dir, "old")
	b, err := broker.Open(old, nil)
	if err != nil {
		s.Fatal(err)
	}
	err = b.CreateQueue(s.Context(), "old", nil, nil)
	if err = errors.Join(err, b.Close(), os.WriteFile(filepath.Join(old, "instance.lock"), nil, 0o600)); err != nil {
		s.Fatal(err)
	}
	s.words = strings.NewReplacer("DEAD", dead, "DELAYED", delayed, "CREDENTIALS", credentials, "DIR", s.dir)
}

// settledState returns the state once two reads are equal. A pause while one of them calculates the time at which the
// delayed message becomes visible changes that time.
func (s *printingSuite) settledState() string {
	s.Helper()
	last := ""
	s.wait(func() error {
		now := s.state()
		defer func() { last = now }()
		if now != last {
			return errors.New("things still change")
		}
		return nil
	})
	return last
}
