package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// identity is a user to switch to; nil means tendril's own user.
type identity struct {
	uid, gid uint32
	groups   []uint32
	// name and home are "" if the user ID has no account.
	name, home string
	own        bool
}

// identityOf parses "name", "uid", "name:group" or "uid:gid". It returns nil for "".
func identityOf(text string) (*identity, error) {
	if text == "" {
		return nil, nil
	}
	who, group, hasGroup := strings.Cut(text, ":")
	if who == "" || hasGroup && group == "" {
		return nil, fmt.Errorf("invalid user %q: use a name, a number, or uid:gid, for example nobody or 1000:1000", text)
	}

	id := &identity{}
	entry, err := lookUser(who)
	switch {
	case err == nil:
		if err := id.fill(entry, hasGroup); err != nil {
			return nil, fmt.Errorf("user %q: %w", text, err)
		}
	case !isNumber(who):
		return nil, fmt.Errorf("user %q: user %s not found on this machine: create it, or use uid:gid", text, who)
	case !hasGroup:
		return nil, fmt.Errorf("user %q: no user has the number %s, so its group is unknown: use uid:gid, for "+
			"example %s:%s", text, who, who, who)
	default:
		id.uid = number(who)
	}

	if hasGroup {
		if id.gid, err = lookupGroup(group); err != nil {
			return nil, fmt.Errorf("user %q: %w", text, err)
		}
	}
	id.own = int(id.uid) == os.Geteuid() && int(id.gid) == os.Getegid()
	return id, nil
}

// IDsOf returns the user ID and primary group ID of a [Process.User].
func IDsOf(user string) (uid, gid int, err error) {
	id, err := identityOf(user)
	if err != nil || id == nil {
		return os.Geteuid(), os.Getegid(), err
	}
	return int(id.uid), int(id.gid), nil
}

func lookUser(who string) (*user.User, error) {
	if isNumber(who) {
		return user.LookupId(who)
	}
	return user.Lookup(who)
}

func (id *identity) fill(entry *user.User, groupNamed bool) error {
	id.uid, id.gid = number(entry.Uid), number(entry.Gid)
	id.name, id.home = entry.Username, entry.HomeDir
	if groupNamed {
		return nil
	}
	groups, err := entry.GroupIds()
	if err != nil {
		return fmt.Errorf("reading its groups: %w", err)
	}
	for _, g := range groups {
		id.groups = append(id.groups, number(g))
	}
	return nil
}

func lookupGroup(group string) (uint32, error) {
	if isNumber(group) {
		return number(group), nil
	}
	entry, err := user.LookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("group %s not found on this machine: create it, or use its number", group)
	}
	return number(entry.Gid), nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

func number(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		// Unreachable: the user and group databases contain only numbers.
		return 65534
	}
	return uint32(n)
}

func (id *identity) credential() *syscall.Credential {
	if id == nil || id.own && os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: id.uid, Gid: id.gid, Groups: id.groups}
}

func (id *identity) environment() []string {
	if id == nil {
		return nil
	}
	name := cmp.Or(id.name, strconv.Itoa(int(id.uid)))
	return []string{"HOME=" + cmp.Or(id.home, "/"), "USER=" + name, "LOGNAME=" + name}
}

// validateUser also fails if the user does not exist.
func validateUser(text string) error {
	if strings.ContainsAny(text, "\x00\n") {
		return errors.New("a user name cannot contain a NUL byte or a line break")
	}
	_, err := identityOf(text)
	return err
}
