package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSecretsAreReadFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const secret = "4f1b0c2a9d8e7f60"
	good := write("good", secret+"\r\n\n")
	for _, tt := range []struct {
		name    string
		flags   map[string]string
		environ []string
		where   string
		wrong   string
	}{
		{"a flag", map[string]string{"console-token-file": good}, nil, good + " (--console-token-file)", ""},
		{"a variable", nil, []string{"TENDRIL_CONSOLE_TOKEN_FILE=" + good}, good + " (TENDRIL_CONSOLE_TOKEN_FILE)", ""},
		{"both", map[string]string{"console-token-file": good}, []string{"TENDRIL_CONSOLE_TOKEN=" + secret}, "",
			"console-token-file and console-token (TENDRIL_CONSOLE_TOKEN) are both set"},
		{"no file", map[string]string{"console-token-file": filepath.Join(dir, "none")}, nil, "", "file not found"},
		{"a folder", map[string]string{"console-token-file": dir}, nil, "", "cannot be read: is a directory"},
		{"an empty file", map[string]string{"console-token-file": write("empty", "\n")}, nil, "", "its content is empty"},
		{"a short secret", map[string]string{"console-token-file": write("short", "hunter2")}, nil, "",
			"its content has the wrong length"},
		{"a long file", map[string]string{"console-token-file": write("long", strings.Repeat("x", maxSecret+1))}, nil, "",
			"its content is longer than 65536 bytes"},
	} {
		cfg, err := Load(Sources{Flags: tt.flags, Environ: home(tt.environ...), Dir: dir,
			SystemFile: filepath.Join(dir, "none")})
		if tt.wrong != "" {
			var wrong *Error
			if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !strings.HasSuffix(wrong.Problems[0].Text, tt.wrong) ||
				wrong.Problems[0].Hint == "" || wrong.Problems[0].Where == "" {
				t.Errorf("%s: %v", tt.name, err)
			} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the secret is told: %v", tt.name, err)
			}
			continue
		}
		if err != nil || cfg.ConsoleToken != secret || cfg.Origin("console-token").String() != tt.where {
			t.Errorf("%s: %v, origin %v", tt.name, err, cfg.Origin("console-token"))
			continue
		}
		if e, err := cfg.Explain("console-token"); err != nil || e.Value != hidden || e.From.Where != tt.where {
			t.Errorf("%s: explained as %+v, %v", tt.name, e, err)
		}
	}
}

func TestSecretFilesOfOthersAreRefusedAndReadableOnesWarnedOf(t *testing.T) {
	t.Parallel()
	const secret = "4f1b0c2a9d8e7f60"
	write := func(t *testing.T, name, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	load := func(t *testing.T, option, path string) (*Config, error) {
		return Load(Sources{Flags: map[string]string{option: path}, Environ: home(), Dir: t.TempDir(),
			SystemFile: filepath.Join(t.TempDir(), "none")})
	}
	for _, c := range []struct {
		name, option, text string
		mode               os.FileMode
		warns              bool
	}{
		{"a token file that all may read", "console-token-file", secret, 0o644, true},
		{"a private token file", "console-token-file", secret, 0o600, false},
		{"a token file of a group", "registry-token-file", secret, 0o640, false},
		{"settings with a token that all may read", "config", "console_token: " + secret + "\n", 0o644, true},
		{"settings with a queue's key that all may read", "config",
			"queues:\n- name: a\n  signing_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0o644, true},
		{"private settings with a token", "config", "console_token: " + secret + "\n", 0o600, false},
		{"settings without secrets", "config", "max_retries: 3\n", 0o644, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "file", c.text, c.mode)
			cfg, err := load(t, c.option, path)
			if err != nil {
				t.Fatal(err)
			}
			warned := slices.ContainsFunc(cfg.Warnings, func(p Problem) bool {
				return strings.Contains(p.Text, "every user on this machine can read") && strings.Contains(p.Hint, "chmod o-r")
			})
			if warned != c.warns {
				t.Errorf("warned %t, want %t: %v", warned, c.warns, cfg.Warnings)
			}
		})
	}

	for mode, want := range map[os.FileMode]string{
		0o644: "every user on this machine can read tls-key in ", 0o666: "another user controls the file of tls-key: ", 0o600: ""} {
		t.Run(fmt.Sprintf("a private key with mode %o", mode), func(t *testing.T) {
			cfg, err := Load(Sources{Flags: map[string]string{"tls-key": write(t, "key", "", mode), "tls-cert": "cert"},
				Environ: home(), Dir: t.TempDir(), SystemFile: filepath.Join(t.TempDir(), "none")})
			if err != nil {
				t.Fatal(err)
			}
			warned := cfg.SecretWarnings()
			if want == "" && len(warned) > 0 || want != "" && !slices.ContainsFunc(warned, func(p Problem) bool {
				return strings.Contains(p.Text, want) && strings.Contains(p.Hint, "chmod ")
			}) {
				t.Errorf("warnings %v, want %q", warned, want)
			}
		})
	}

	t.Run("a token file that everybody may write", func(t *testing.T) {
		path := write(t, "file", secret, 0o666)
		if _, err := load(t, "console-token-file", path); err == nil || !strings.Contains(err.Error(), "not trusted") {
			t.Errorf("%v, want a refusal", err)
		}
	})
	t.Run("a token file of another user", func(t *testing.T) {
		path := write(t, "file", secret, 0o644)
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Skip("only root can give a file away")
		}
		if _, err := load(t, "console-token-file", path); err == nil || !strings.Contains(err.Error(), "belongs to user") {
			t.Errorf("%v, want a refusal", err)
		}
	})
}

func TestTokensThatEverybodyKnowsAreRefused(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"console-token", "console-drain-token", "registry-token"} {
		for name, c := range map[string]struct{ value, want string }{
			"placeholder": {placeholder, "is the placeholder"},
			"zeros":       {strings.Repeat("0", 64), "repeats a single character"},
			"letters":     {strings.Repeat("x", 16), "repeats a single character"},
			"a secret":    {"4f1b0c2a9d8e7f60", ""},
		} {
			t.Run(option+", "+name, func(t *testing.T) {
				t.Parallel()
				_, err := Load(Sources{Flags: map[string]string{option: c.value}, Environ: home(), Dir: t.TempDir(),
					SystemFile: filepath.Join(t.TempDir(), "none")})
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
}

func TestEverySecretHasAFile(t *testing.T) {
	t.Parallel()
	secrets := 0
	for _, o := range Options() {
		if !o.IsSecret() {
			continue
		}
		secrets++
		file, found := Lookup(o.Name + secretFileSuffix)
		if !found || !file.isSecretFile || file.Guard() != GuardAccess || file.Variable != o.Variable+"_FILE" ||
			file.Key != o.Key+"_file" || file.IsSecret() {
			t.Errorf("the file of %s: %+v", o.Name, file)
		}
	}
	if secrets == 0 {
		t.Error("no option is secret")
	}
	if pid, _ := Lookup("pid-file"); pid.isSecretFile {
		t.Error("the PID file is taken for that of a secret")
	}
}
