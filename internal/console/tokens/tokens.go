package tokens

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/host/datadir"
)

const (
	// Filename is the name of the file with the created tokens.
	Filename = "console-tokens.json"
	// UsedFilename is the name of the file with the tokens' last use, written by the environment.
	UsedFilename = "console-tokens.used.json"
	// prefix starts every token's secret, so that secret scanners find leaked ones.
	prefix    = "tendril_"
	maxTokens = 100
	usedEvery = time.Minute
)

// Token is an access token without its secret.
type Token struct {
	// Name identifies the holder: 1 to 64 letters, digits, "_", "-" and ".".
	Name string `json:"name"`
	// Scopes holds at least one Scope constant of package api.
	Scopes []string `json:"scopes"`
	// Expires is zero if the token does not expire. LastUsed is zero if the token has not been used, and accurate to
	// one minute.
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

type stored struct {
	Token
	SHA256 string `json:"sha256"`
}

// The secret has 256 random bits, so an unsalted digest is sufficient.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Create adds a token with t's Name, Scopes and Expires to dataDir and returns its secret, which is not stored. The
// name must be new.
func Create(dataDir string, t Token, now time.Time) (secret string, err error) {
	tokens, err := t.checkNew(dataDir)
	if err != nil {
		return "", err
	}
	if err := datadir.Make(dataDir); err != nil {
		return "", err
	}

	secret = prefix + api.NewToken()
	t.Created = now.UTC().Truncate(time.Second)
	t.LastUsed = time.Time{}
	tokens = append(tokens, stored{t, digest(secret)})
	return secret, write(dataDir, tokens)
}

// CanCreate returns the error that [Create] would return before writing.
func CanCreate(dataDir string, t Token) error {
	_, err := t.checkNew(dataDir)
	return err
}

// checkNew also returns the existing tokens.
func (t *Token) checkNew(dataDir string) ([]stored, error) {
	tokens, err := read(dataDir)
	if err != nil {
		return nil, err
	}

	isNamed := func(other stored) bool { return other.Name == t.Name }
	switch {
	case len(t.Name) > 64 || !validName.MatchString(t.Name):
		err = api.BadRequest(fmt.Sprintf("invalid name %q", t.Name),
			`use 1 to 64 letters, digits, "_", "-" and "."`)
	case len(t.Scopes) == 0:
		err = api.BadRequest("a token needs a scope", "use one or more of "+strings.Join(api.Scopes(), ", "))
	case slices.ContainsFunc(tokens, isNamed):
		err = api.Conflict("duplicate token name "+t.Name,
			"type 'tendril tokens revoke "+t.Name+"', or choose another name")
	case len(tokens) >= maxTokens:
		err = api.Conflict(fmt.Sprintf("there are already %d tokens", len(tokens)), "revoke some with 'tendril tokens revoke NAME'")
	default:
		err = api.CheckScopes(t.Scopes)
	}

	return tokens, err
}

// Revoke removes a token. If it does not exist, Revoke returns an [api.Error] with status 404.
func Revoke(dataDir, name string) error {
	left, err := readWithout(dataDir, name)
	if err != nil {
		return err
	}
	return write(dataDir, left)
}

// CanRevoke returns the error that [Revoke] would return before writing.
func CanRevoke(dataDir, name string) error {
	_, err := readWithout(dataDir, name)
	return err
}

func readWithout(dataDir, name string) ([]stored, error) {
	tokens, err := read(dataDir)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(tokens), func(t stored) bool { return t.Name == name })
	if len(left) == len(tokens) {
		return nil, api.NotFound(fmt.Sprintf("token %q not found", name),
			"'tendril tokens list' shows them")
	}
	return left, nil
}

// List returns the tokens in dataDir in order of creation.
func List(dataDir string) ([]Token, error) {
	all, err := read(dataDir)
	if err != nil {
		return nil, err
	}
	used := readUsed(dataDir)
	tokens := make([]Token, len(all))
	for i, t := range all {
		tokens[i] = t.Token
		if at := used[t.Name]; !at.Before(tokens[i].Created) { // an earlier use was of another token with this name
			tokens[i].LastUsed = at
		}
	}
	return tokens, nil
}

func read(dataDir string) ([]stored, error) {
	path := filepath.Join(dataDir, Filename)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("reading tokens: %s is not a regular file for its owner alone; type 'chmod 600 %s'", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}

	var tokens []stored
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&tokens); err != nil {
		return nil, fmt.Errorf("reading tokens: %s is damaged: remove it, and create the tokens again", path)
	}

	return tokens, nil
}

func write(dataDir string, tokens []stored) error {
	if err := datadir.ReplaceJSON(filepath.Join(dataDir, Filename), tokens); err != nil {
		return fmt.Errorf("writing tokens: %w", err)
	}
	return nil
}

// readUsed ignores errors, because the times are only informational.
func readUsed(dataDir string) map[string]time.Time {
	used := map[string]time.Time{}
	text, err := os.ReadFile(filepath.Join(dataDir, UsedFilename))
	if err != nil || json.Unmarshal(text, &used) != nil {
		return map[string]time.Time{}
	}
	return used
}

// File holds the tokens of a data directory. It rereads their file when it changes. It is safe for concurrent use.
type File struct {
	Dir string
	Log *slog.Logger

	mu     sync.Mutex
	info   fs.FileInfo // at the last read
	err    error
	tokens []stored
	used   map[string]time.Time
}

// Find returns the token with the given secret, comparing in constant time, and records its use.
func (f *File) Find(secret string) (Token, bool) {
	if f.Dir == "" || !strings.HasPrefix(secret, prefix) {
		return Token{}, false
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread()

	got := []byte(digest(secret))
	var found *stored
	for i := range f.tokens {
		if subtle.ConstantTimeCompare([]byte(f.tokens[i].SHA256), got) == 1 {
			found = &f.tokens[i]
		}
	}

	now := time.Now()
	if found == nil || !found.Expires.IsZero() && !now.Before(found.Expires) {
		return Token{}, false
	}
	f.recordUse(found.Name, now)
	return found.Token, true
}

// reread accepts no tokens if the file is unreadable.
func (f *File) reread() {
	info, err := os.Lstat(filepath.Join(f.Dir, Filename))
	if err != nil {
		f.info = nil
		f.err = nil
		f.tokens = nil
		return
	}
	if f.err == nil && datadir.IsUnchanged(f.info, info) {
		return
	}

	tokens, err := read(f.Dir)
	if err != nil && (f.err == nil || f.err.Error() != err.Error()) {
		f.Log.Error("tokens not accepted", "err", err)
	}
	f.info = info
	f.err = err
	f.tokens = tokens

	f.used = readUsed(f.Dir)
	maps.DeleteFunc(f.used, func(name string, _ time.Time) bool {
		return !slices.ContainsFunc(f.tokens, func(t stored) bool { return t.Name == name })
	})
}

func (f *File) recordUse(name string, now time.Time) {
	if now.Sub(f.used[name]) < usedEvery {
		return
	}
	f.used[name] = now.UTC().Truncate(time.Second)
	if err := datadir.ReplaceJSON(filepath.Join(f.Dir, UsedFilename), f.used); err != nil {
		f.Log.Warn("last use of a token not stored", "err", err)
	}
}
