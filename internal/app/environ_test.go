package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
)

func TestEnviron(t *testing.T) {
	t.Parallel()
	embedded := Queue{Endpoint: "http://127.0.0.1:9324", Region: "us-east-1",
		URL: "http://127.0.0.1:9324/000000000000/jobs", Name: "jobs"}
	for _, tt := range []struct {
		name string
		base []string
		port int
		q    Queue
		want []string
	}{{
		name: "embedded queue, nothing set before",
		base: []string{"HOME=/home/me"}, port: 5000, q: embedded,
		want: []string{"HOME=/home/me", "PYTHONUNBUFFERED=1", "PORT=5000", "TENDRIL_QUEUE=jobs",
			"TENDRIL_QUEUE_URL=http://127.0.0.1:9324/000000000000/jobs",
			"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
			"AWS_ACCESS_KEY_ID=tendril", "AWS_SECRET_ACCESS_KEY=tendril"},
	}, {
		name: "the user's own credentials and region stay",
		base: []string{"AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=eu-west-1",
			"AWS_DEFAULT_REGION=eu-west-1"}, port: 5000, q: embedded,
		want: []string{"AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=eu-west-1",
			"AWS_DEFAULT_REGION=eu-west-1",
			"PYTHONUNBUFFERED=1", "PORT=5000", "TENDRIL_QUEUE=jobs", "TENDRIL_QUEUE_URL=http://127.0.0.1:9324/000000000000/jobs",
			"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324"},
	}, {
		name: "tendril's own settings and an old port do not reach the app",
		base: []string{"TENDRIL_DATA_DIR=/x", "WORKERLESS_CONCURRENCY=3", "NOTIFY_SOCKET=/run/n", "PORT=80"}, port: 5001,
		want: []string{"PYTHONUNBUFFERED=1", "PORT=5001"},
	}, {
		name: "no port where nothing is to listen", base: []string{"PORT=80", "PORTS=81"}, want: []string{"PORTS=81", "PYTHONUNBUFFERED=1"},
	}, {
		name: "the output of Python is not kept in a buffer, unless the user wants that",
		base: []string{"PYTHONUNBUFFERED="}, want: []string{"PYTHONUNBUFFERED="},
	}, {
		name: "Amazon SQS: region and credentials are left alone",
		base: []string{"AWS_PROFILE=prod"}, port: 5000,
		q: Queue{URL: "https://sqs.eu-west-1.amazonaws.com/1/jobs", Name: "jobs", Region: "eu-west-1"},
		want: []string{"AWS_PROFILE=prod", "PYTHONUNBUFFERED=1", "PORT=5000", "TENDRIL_QUEUE=jobs",
			"TENDRIL_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/jobs"},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := slices.Clone(tt.base)
			if diff := cmp.Diff(tt.want, Environ(tt.base, nil, nil, tt.port, tt.q)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !slices.Equal(base, tt.base) {
				t.Error("the caller's slice was changed")
			}
		})
	}
}

func TestVirtualEnvironmentOfTheFolderIsActive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, folder string
		base, want   []string
	}{
		{"folder .venv", ".venv", []string{"PATH=/bin"}, []string{"VIRTUAL_ENV=DIR/.venv", "PATH=DIR/.venv/bin:/bin"}},
		{"folder venv", "venv", []string{"PATH=/bin"}, []string{"VIRTUAL_ENV=DIR/venv", "PATH=DIR/venv/bin:/bin"}},
		{"no PATH", ".venv", nil, []string{"VIRTUAL_ENV=DIR/.venv", "PATH=DIR/.venv/bin:/usr/local/bin:/usr/bin:/bin"}},
		{"another is active", ".venv", []string{"PATH=/x", "VIRTUAL_ENV=/x"}, []string{"PATH=/x", "VIRTUAL_ENV=/x"}},
		{"none", "lib", []string{"PATH=/bin"}, []string{"PATH=/bin"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(dir, tt.folder), 0o700),
				os.WriteFile(filepath.Join(dir, tt.folder, "pyvenv.cfg"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			want := append(tt.want, "PYTHONUNBUFFERED=1")
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "DIR", dir)
			}
			if diff := cmp.Diff(want, Environ(tt.base, &bundle.Bundle{Dir: dir}, nil, 0, Queue{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
