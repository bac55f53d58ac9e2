package api

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tendril/internal/host/datadir"
)

// InstanceFile describes the running environment in its data directory.
const InstanceFile = "instance.json"

// ErrNotRunning means that no environment is running on the data directory.
var ErrNotRunning = errors.New("no environment is running")

// Instance is the environment running on a data directory. Its file exists while the environment is up and contains
// no secrets.
type Instance struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	// Program is zero in files of older versions.
	Program     Program `json:"program,omitzero"`
	Environment string  `json:"environment"`
	// Console is the console's local host:port, or "" if off. ConsoleCertificate is its certificate's fingerprint, or
	// "" for plain HTTP.
	Console            string `json:"console"`
	ConsoleCertificate string `json:"console_certificate,omitempty"`
	// Endpoint is the embedded SQS endpoint's URL; "" without embedded queues.
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	AccountID string `json:"account_id"`
	// Queues is empty if the environment only serves queues.
	Queues    []InstanceQueue `json:"queues,omitempty"`
	StartedAt time.Time       `json:"started_at"`
	// AppPort is the first replica's port, or 0.
	AppPort int `json:"app_port,omitempty"`
	// Folder is the app's folder or, without one, the working directory of 'tendril up'; absolute.
	Folder string `json:"folder,omitempty"`
	// AppliesMachine means that deployments apply the machine sections of .ebextensions.
	AppliesMachine bool `json:"applies_machine,omitempty"`
}

// Program identifies the executable of a process. It is recorded because other users may be unable to read /proc.
type Program struct {
	Path string `json:"path"`
	// ID changes when the file is replaced.
	ID string `json:"id"`
}

// ThisProgram identifies the running executable, or returns the zero value.
func ThisProgram() Program {
	path, _ := os.Executable()
	info, err := os.Stat(path)
	if err != nil {
		return Program{}
	}
	stat := info.Sys().(*syscall.Stat_t)
	return Program{path, fmt.Sprintf("%d:%d:%d", stat.Dev, stat.Ino, info.ModTime().UnixNano())}
}

// InstanceQueue is a queue the environment receives from.
type InstanceQueue struct {
	Name            string `json:"name"`
	URL             string `json:"url"`
	DeadLetterQueue string `json:"dead_letter_queue,omitempty"`
	Embedded        bool   `json:"embedded"` // false on Amazon SQS
}

// Queue returns the named queue, or the first if name is ""; the zero value if absent.
func (i *Instance) Queue(name string) InstanceQueue {
	for _, q := range i.Queues {
		if name == "" || name == q.Name {
			return q
		}
	}
	return InstanceQueue{}
}

// ConsoleURL returns the console's URL; "" if off.
func (i *Instance) ConsoleURL() string {
	switch {
	case i.Console == "":
		return ""
	case i.ConsoleCertificate != "":
		return "https://" + i.Console
	}
	return "http://" + i.Console
}

// Embedded reports whether the instance serves its own queues.
func (i *Instance) Embedded() bool { return i.Endpoint != "" }

// Write atomically writes dataDir's instance file with mode 0600.
func (i *Instance) Write(dataDir string) error {
	return datadir.ReplaceJSON(filepath.Join(dataDir, InstanceFile), i)
}

// RemoveInstance removes dataDir's instance file, if any.
func RemoveInstance(dataDir string) error { return remove(filepath.Join(dataDir, InstanceFile)) }

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadInstance returns the environment running on dataDir. The error wraps [ErrNotRunning] without an instance file,
// or if its process no longer holds the claim. The process ID alone is no proof, because it may have been reused.
func ReadInstance(dataDir string) (*Instance, error) {
	path := filepath.Join(dataDir, InstanceFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notRunning(dataDir)
	case errors.Is(err, fs.ErrPermission):
		return nil, foreign(path)
	case err != nil:
		return nil, fmt.Errorf("finding the running environment: %w", err)
	}

	var i Instance
	if err := json.Unmarshal(data, &i); err != nil {
		return nil, &Error{Message: fmt.Sprintf("%s is damaged: %v", path, err),
			Hint: "remove it if no environment is running there", cause: err}
	}

	switch claimed, err := isClaimed(dataDir); {
	case errors.Is(err, fs.ErrPermission):
		return nil, foreign(filepath.Join(dataDir, claimFile))
	case err != nil:
		return nil, fmt.Errorf("checking for a running environment: %w", err)
	case !claimed:
		return nil, notRunning(dataDir)
	}

	return &i, nil
}

// DataDirectories returns the data directories in a state folder, then the folder itself, which earlier versions used
// for all environments.
func DataDirectories(stateFolder string) (dirs []string) {
	if stateFolder == "" {
		return nil
	}
	folder := datadir.Of(stateFolder, "")
	entries, _ := os.ReadDir(folder) // an unreadable folder counts as empty
	for _, entry := range entries {
		dir := filepath.Join(folder, entry.Name())
		if real, err := os.Readlink(dir); err == nil && strings.HasPrefix(entry.Name(), elsewhere) {
			dir = real
		}
		dirs = append(dirs, dir)
	}
	return append(dirs, stateFolder)
}

// elsewhere is the prefix of links to data directories outside the state folder.
const elsewhere = "elsewhere-"

// Announce creates a symbolic link by which [DataDirectories] finds a data directory outside the state folder, and
// removes broken ones. forget removes it unless an environment is running on the data directory.
func Announce(stateFolder, dataDir string) (forget func(), err error) {
	folder := datadir.Of(stateFolder, "")
	dataDir, err = filepath.Abs(dataDir)
	if err != nil || stateFolder == "" || filepath.Dir(dataDir) == filepath.Clean(folder) || dataDir == filepath.Clean(stateFolder) {
		return func() {}, err
	}
	removeBrokenLinks(folder)

	sum := sha256.Sum256([]byte(dataDir))
	link := filepath.Join(folder, elsewhere+hex.EncodeToString(sum[:8]))
	forget = func() {
		if _, err := ReadInstance(dataDir); err != nil {
			_ = os.Remove(link)
		}
	}
	err = os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.Symlink(dataDir, link)
	}
	if errors.Is(err, fs.ErrExist) {
		return forget, nil
	}
	return forget, err
}

func removeBrokenLinks(folder string) {
	links, _ := filepath.Glob(filepath.Join(folder, elsewhere+"*"))
	for _, link := range links {
		if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(link)
		}
	}
}

// Found is an environment running on this machine, and its data directory.
type Found struct {
	DataDir string
	// Name is the environment's name or, if several have it, NAME@END with the end of the data directory's path.
	Name string
	Instance
}

// Running returns the environments running on dirs, sorted by name. It omits unreadable directories and duplicates.
func Running(dirs []string) (all []Found) {
	for _, dir := range dirs {
		if i, err := ReadInstance(dir); err == nil {
			all = append(all, Found{DataDir: dir, Instance: *i})
		}
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.DataDir, b.DataDir))
	})
	all = slices.CompactFunc(all, func(a, b Found) bool { return a.DataDir == b.DataDir })
	for i := range all {
		all[i].Name = uniqueName(&all[i], all)
	}
	return all
}

func uniqueName(f *Found, all []Found) string {
	var others []string
	for i := range all {
		if all[i].Environment == f.Environment && all[i].DataDir != f.DataDir {
			others = append(others, all[i].DataDir)
		}
	}
	if len(others) == 0 {
		return f.Environment
	}

	dir := f.DataDir
	for at := strings.LastIndexByte(dir, '/'); at > 0; at = strings.LastIndexByte(dir[:at], '/') {
		if !slices.ContainsFunc(others, func(other string) bool { return strings.HasSuffix(other, dir[at:]) }) {
			return f.Environment + "@" + dir[at+1:]
		}
	}
	return f.Environment + "@" + dir
}

func notRunning(dataDir string) error {
	return &Error{Message: fmt.Sprintf("%v on %s", ErrNotRunning, dataDir),
		Hint: "start one with 'tendril up' or use another --data-dir", cause: ErrNotRunning}
}

func foreign(path string) error {
	return &Error{Message: "reading " + path + " is not allowed: it belongs to another user",
		Hint: "run this as the user that runs the environment", cause: fs.ErrPermission}
}

// ProcessAlive reports whether a process is running, under any user. On Linux, an exited process that its parent has
// not reaped is not running.
func ProcessAlive(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return !bytes.HasPrefix(state, []byte("Z"))
}

const claimFile = "instance.lock"

// ErrClaimed means that another process owns the data directory.
var ErrClaimed = errors.New("another environment is running")

// Claim makes this process the owner of the instance file and token in dataDir, which must exist, until it calls
// release or exits. The error wraps [ErrClaimed] if another process is the owner.
func Claim(dataDir string) (release func() error, err error) {
	f, err := datadir.OpenFile(filepath.Join(dataDir, claimFile))
	if err != nil {
		return nil, fmt.Errorf("claiming the data directory: %w; use another with --data-dir", err)
	}

	err = lockExclusive(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(claimedBy(dataDir), f.Close())
	}
	if err != nil {
		err = fmt.Errorf("locking %s: %w; use another folder with --data-dir", f.Name(), err)
		return nil, errors.Join(err, f.Close())
	}

	// A child process may hold a copy of the descriptor, so closing alone would not unlock.
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}

func claimedBy(dataDir string) error {
	i, err := ReadInstance(dataDir)
	if err != nil {
		return fmt.Errorf("%w on %s", ErrClaimed, dataDir)
	}
	return fmt.Errorf("%w on %s: %q, process %d", ErrClaimed, dataDir, i.Environment, i.PID)
}

const claimWait = 10 * time.Second

// lockExclusive retries for up to claimWait, because [checkUnclaimed] in other processes briefly shares the lock.
func lockExclusive(f *os.File) error {
	for deadline := time.Now().Add(claimWait); ; time.Sleep(time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		if err := checkUnclaimed(f); err != nil {
			return err
		}
	}
}

// checkUnclaimed returns EWOULDBLOCK if a process has locked f exclusively, because it then cannot be locked shared.
func checkUnclaimed(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return err
}

func isClaimed(dataDir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dataDir, claimFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}

	err = checkUnclaimed(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, f.Close()
	}
	return false, errors.Join(err, f.Close())
}

// TokenFile is the data directory's file with the console's token.
const TokenFile = "console.token"

// NewToken returns 256 random bits in hexadecimal.
func NewToken() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// WriteToken writes the token file in dataDir with mode 0600, even if the file had another mode.
func WriteToken(dataDir, token string) error {
	return datadir.Replace(filepath.Join(dataDir, TokenFile), []byte(token+"\n"), 0o600)
}

// RemoveToken removes dataDir's token file, if any.
func RemoveToken(dataDir string) error { return remove(filepath.Join(dataDir, TokenFile)) }

// ReadToken returns the token in dataDir.
func ReadToken(dataDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dataDir, TokenFile))
	return strings.TrimSpace(string(data)), err
}
