package access

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/internal/host/datadir"
	"tendril/internal/host/trust"
	"tendril/queue"
)

const (
	service         = "sqs"
	recheckInterval = time.Second
	maxFile         = 1 << 20 // bytes
)

// KeyPair is an entry of a credentials file.
type KeyPair struct {
	// Name consists of 1 to 64 letters, digits, "_", "-" and ".".
	Name string `json:"name"`
	// AccessKeyID is unique within the file. It is not secret.
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey Secret `json:"secret_access_key"`
	// SessionToken must accompany each request; "" means that requests must have none.
	SessionToken Secret `json:"session_token,omitempty"`
	// Allow is [AllowAll] or [AllowSend].
	Allow string `json:"allow"`
	// Queues limits the key pair to the named queues; empty means all.
	Queues  []string  `json:"queues,omitempty"`
	Created time.Time `json:"created"`
	// Expires is zero if the key pair does not expire.
	Expires time.Time `json:"expires,omitzero"`
}

// Values of [KeyPair].Allow.
const (
	// AllowAll permits every action on the key pair's queues and, if they are not limited, every other action.
	AllowAll = "all"
	// AllowSend permits sending messages and reading a queue's URL and attributes.
	AllowSend = "send"
)

// Secret is a string that is printed as "***". Only its JSON form contains the value.
type Secret string

// String returns "***".
func (Secret) String() string { return "***" }

// GoString returns "***".
func (Secret) GoString() string { return "***" }

type credentialsFile struct {
	Credentials []KeyPair `json:"credentials"`
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func validName(name string) bool { return len(name) <= 64 && nameForm.MatchString(name) }

func (k *KeyPair) check() error {
	switch {
	case !validName(k.Name):
		return fmt.Errorf("invalid name %q: use 1 to 64 letters, digits, \"_\", \"-\" and \".\"", k.Name)
	case !validName(k.AccessKeyID):
		return fmt.Errorf("%s: invalid access_key_id: use 1 to 64 letters, digits, \"_\", \"-\" and \".\"", k.Name)
	case len(k.SecretAccessKey) < 16:
		return fmt.Errorf("%s: secret_access_key is shorter than 16 characters", k.Name)
	case k.Allow != AllowAll && k.Allow != AllowSend:
		return fmt.Errorf("%s: invalid allow %q: use \"all\" or \"send\"", k.Name, k.Allow)
	}
	return nil
}

// ReadFile returns a file's key pairs in file order. The file must belong to the current user and be inaccessible to
// other users.
func ReadFile(path string) ([]KeyPair, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("reading credentials: %s is not a regular file of at most %d bytes", path, maxFile)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("reading credentials: other users can read %s (mode %04o); type 'chmod 600 %s'", path,
			mode, path)
	}
	if err := trust.File(path); err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	pairs, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %s: %w; see 'tendril credentials --help'", path, err)
	}
	return pairs, nil
}

func parse(text []byte) ([]KeyPair, error) {
	var file credentialsFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		at := decoder.InputOffset()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		}
		line := 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
		return nil, fmt.Errorf("line %d: invalid credentials file: %w", line, redactValue(err))
	}

	names := map[string]bool{}
	ids := map[string]bool{}
	for i := range file.Credentials {
		k := &file.Credentials[i]
		if err := k.check(); err != nil {
			return nil, err
		}

		if names[k.Name] || ids[k.AccessKeyID] {
			return nil, fmt.Errorf("%s: duplicate name or access_key_id", k.Name)
		}
		names[k.Name] = true
		ids[k.AccessKeyID] = true
	}
	return file.Credentials, nil
}

// redactValue removes values from JSON errors, because they may be secrets.
func redactValue(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s must not be a JSON %s", mismatch.Field, mismatch.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || strings.Contains(err.Error(), "unknown field") {
		return err
	}
	return errors.New("invalid JSON")
}

// Create generates a key pair with the Name, Allow, Queues and Expires of k, and adds it to a file, which it creates
// with mode 0600 if missing. A key pair that expires gets a session token.
func Create(path string, k KeyPair, now time.Time) (KeyPair, error) {
	pairs, err := pairsWith(path, k, now)
	if err != nil {
		return KeyPair{}, err
	}
	return pairs[len(pairs)-1], writeFile(path, pairs)
}

// CanCreate returns the error that [Create] would return before writing.
func CanCreate(path string, k KeyPair) error {
	_, err := pairsWith(path, k, time.Time{})
	return err
}

// pairsWith returns the file's key pairs, followed by k with new keys.
func pairsWith(path string, k KeyPair, now time.Time) ([]KeyPair, error) {
	pairs, err := ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if slices.ContainsFunc(pairs, func(other KeyPair) bool { return other.Name == k.Name }) {
		return nil, fmt.Errorf("duplicate credential name %s in %s: revoke it, or choose another name", k.Name, path)
	}

	k.makeKeys()
	if !k.Expires.IsZero() {
		k.SessionToken = Secret(randomKey(60))
	}
	k.Created = now.UTC().Truncate(time.Second)
	return append(pairs, k), k.check()
}

// Revoke removes the key pair with a name or access key ID from a file. It returns an error if there is none.
func Revoke(path, name string) error {
	kept, err := pairsWithout(path, name)
	if err != nil {
		return err
	}
	return writeFile(path, kept)
}

// CanRevoke returns the error that [Revoke] would return before writing.
func CanRevoke(path, name string) error {
	_, err := pairsWithout(path, name)
	return err
}

func pairsWithout(path, name string) ([]KeyPair, error) {
	pairs, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(pairs),
		func(k KeyPair) bool { return k.Name == name || k.AccessKeyID == name })
	if len(kept) == len(pairs) {
		return nil, fmt.Errorf("credential %s not found in %s: see 'tendril credentials list'", name, path)
	}
	return kept, nil
}

func (k *KeyPair) makeKeys() {
	k.AccessKeyID = "TNDL" + rand.Text()[:16]
	k.SecretAccessKey = Secret(randomKey(30))
}

func randomKey(bytes int) string {
	key := make([]byte, bytes)
	rand.Read(key) // never fails
	return base64.RawURLEncoding.EncodeToString(key)
}

func writeFile(path string, pairs []KeyPair) error {
	if err := datadir.ReplaceJSON(path, credentialsFile{pairs}); err != nil {
		return fmt.Errorf("writing credentials: %w", err)
	}
	return nil
}

// Keyring authenticates requests with the key pairs of a file. Its methods are safe for concurrent use.
type Keyring struct {
	path     string
	rejected func(error)
	now      func() time.Time

	mu      sync.Mutex
	pairs   map[string]KeyPair // by access key ID
	granted []KeyPair          // created by Grant; not in the file
	info    fs.FileInfo        // at the last read
	err     error
	checked time.Time
}

// Open reads a credentials file. If the file changes and is unusable, the keyring keeps its key pairs and passes the
// reason to rejected, which may be nil.
func Open(path string, rejected func(error)) (*Keyring, error) {
	k := &Keyring{path: path, rejected: rejected, now: time.Now}
	pairs, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	k.setPairs(pairs)
	return k, nil
}

// Grant creates a key pair with all permissions that exists only in memory.
func (k *Keyring) Grant(name string) KeyPair {
	k.mu.Lock()
	defer k.mu.Unlock()
	pair := KeyPair{Name: name, Allow: AllowAll, Created: k.now()}
	pair.makeKeys()
	k.granted = append(k.granted, pair)
	k.pairs[pair.AccessKeyID] = pair
	return pair
}

func (k *Keyring) setPairs(pairs []KeyPair) {
	pairs = slices.Concat(pairs, k.granted)
	k.pairs = make(map[string]KeyPair, len(pairs))
	for _, p := range pairs {
		k.pairs[p.AccessKeyID] = p
	}
}

func (k *Keyring) lookUp(id string) (pair KeyPair, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.checked) >= recheckInterval {
		k.checked = now
		k.refresh()
	}
	pair, ok = k.pairs[id]
	return pair, ok
}

func (k *Keyring) refresh() {
	info, err := os.Stat(k.path)
	if err == nil && k.err == nil && datadir.IsUnchanged(k.info, info) {
		return
	}

	pairs, err := ReadFile(k.path)
	switch {
	case err == nil:
		k.setPairs(pairs)
	case k.err != nil && k.err.Error() == err.Error(): // already reported
	case k.rejected != nil:
		k.rejected(err)
	}
	k.info, k.err = info, err
}

// errRefused is the error for all rejected signatures. Its code makes SDKs compensate for a wrong clock and retry.
var errRefused = queue.Errorf(queue.CodeSignatureDoesNotMatch, "The request is not signed with valid credentials. "+
	"Check the caller's access key, secret key and clock.")

// Claims reports whether the request's signature is well formed and current, and names a valid key pair. It does not
// verify the signature.
func (k *Keyring) Claims(r *http.Request) bool {
	_, ok := k.readClaim(r)
	return ok
}

// claim is an unverified signature and the key pair it names.
type claim struct {
	signature signature
	pair      KeyPair
}

// readClaim returns ok = false if no signature value could make the request valid.
func (k *Keyring) readClaim(r *http.Request) (c claim, ok bool) {
	s, wellFormed := readSignature(r)
	pair, known := k.lookUp(s.keyID)
	if !wellFormed || !known || s.service != service {
		return claim{}, false
	}
	now := k.now()
	isExpired := !pair.Expires.IsZero() && now.After(pair.Expires)
	if isExpired || !s.isCurrent(now) {
		return claim{}, false
	}
	return claim{s, pair}, equalSecrets(string(pair.SessionToken), s.token) && s.covers(r.Header)
}

// Verify returns the caller who signed the request with this body. All failures return the same [*queue.Error].
func (k *Keyring) Verify(r *http.Request, body []byte) (*Caller, error) {
	claim, ok := k.readClaim(r)
	if !ok {
		return nil, errRefused
	}
	digest := hexSum(body)
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" && claimed != digest {
		return nil, errRefused
	}
	pair := claim.pair
	if !equalSecrets(claim.signature.expected(r, digest, string(pair.SecretAccessKey)), claim.signature.sum) {
		return nil, errRefused
	}

	c := OwnerOf(r)
	c.Name = pair.Name
	c.sendOnly = pair.Allow == AllowSend
	c.queues = pair.Queues
	return c, nil
}
