package deliver

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

func TestSamplesOfThePageVerify(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/signing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		language, file, after string
		program               func() []string
	}{
		{"python", "verify.py", "import json, sys\n" +
			"for c in json.load(sys.stdin): print(verify(c['secret'], c['headers'], c['body'].encode()))\n",
			func() []string { return []string{testpeer.Python(t, "python3")} }},
		{"js", "verify.mjs", "import { readFileSync } from 'node:fs';\n" +
			"for (const c of JSON.parse(readFileSync(0, 'utf8')))\n" +
			"  console.log(verify(c.secret, c.headers, Buffer.from(c.body)));\n",
			func() []string { return []string{testpeer.Program(t, "node")} }},
		{"go", "verify.go", "", func() []string { return []string{testpeer.Program(t, "go")} }},
	} {
		t.Run(tt.language, func(t *testing.T) {
			t.Parallel()
			_, sample, found := strings.Cut(string(page), "```"+tt.language+"\n")
			sample, _, _ = strings.Cut(sample, "```\n")
			if !found || strings.Count(sample, "\n") > 16 {
				t.Fatalf("the sample in %s is missing or long:\n%s", tt.language, sample)
			}
			if tt.language == "go" {
				sample = goProgram + sample
			}
			path := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(path, []byte(sample+tt.after), 0o600); err != nil {
				t.Fatal(err)
			}
			argv := append(tt.program(), path)
			if tt.language == "go" { // build before signing, because a signature is valid for five minutes
				argv = buildProgram(t, argv[0], path)
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cases, want := signedRequests(t)
			cmd.Stdin = strings.NewReader(cases)
			out, err := cmd.CombinedOutput()
			if got := strings.ToLower(strings.Join(strings.Fields(string(out)), " ")); err != nil || got != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
		})
	}
}

func buildProgram(t *testing.T, compiler, path string) (argv []string) {
	t.Helper()
	program := strings.TrimSuffix(path, ".go")
	if out, err := exec.Command(compiler, "build", "-o", program, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{program}
}

const goProgram = `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var all []struct {
		Secret, Body string
		Headers      map[string]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	for _, c := range all {
		header := http.Header{}
		for name, value := range c.Headers {
			header.Set(name, value)
		}
		fmt.Println(verify(c.Secret, header, []byte(c.Body)))
	}
}

`

type signedRequest struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func signedRequests(t *testing.T) (cases, want string) {
	t.Helper()
	const other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	h := newHTTP(t, func(o *Options) { o.SigningKeys = []string{other, signingSecret} })
	m := message()
	m.Body = "{\"name\": \"Zoë\"}\n"
	lines, _ := rendered(t, h, m)
	sent := signedRequest{signingSecret, map[string]string{}, m.Body}
	for _, line := range lines {
		if name, value, _ := strings.Cut(line, ": "); strings.HasPrefix(name, "webhook-") {
			sent.Headers[name] = value
		}
	}
	all := []signedRequest{sent}
	for _, change := range []func(*signedRequest){
		func(r *signedRequest) { r.Secret = other },
		func(r *signedRequest) { r.Body += " " },
		func(r *signedRequest) { r.Secret = "whsec_" + strings.Repeat("A", 32) },
		func(r *signedRequest) { r.Headers["webhook-id"] = "x" },
		func(r *signedRequest) { r.Headers["webhook-signature"] = "v1,AAAA v2" },
		func(r *signedRequest) {
			signer, at := h.head.signer, time.Now().Add(-time.Hour)
			line := string(signer.AppendHeaders(nil, m.ID, m.Body, at))
			r.Headers["webhook-timestamp"] = strconv.FormatInt(at.Unix(), 10)
			_, r.Headers["webhook-signature"], _ = strings.Cut(strings.TrimSuffix(line, "\r\n"), "webhook-signature: ")
		},
	} {
		changed := sent
		changed.Headers = maps.Clone(sent.Headers)
		change(&changed)
		all = append(all, changed)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), "true true false false false false false"
}
