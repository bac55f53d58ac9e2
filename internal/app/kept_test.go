package app

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func kept(number int, folder string) api.AppVersion {
	return api.AppVersion{Number: number, State: api.VersionKept, Folder: folder}
}

func failed(number int) api.AppVersion {
	return api.AppVersion{Number: number, State: api.VersionFailed, Error: "exit status 1"}
}

func numbers(all []api.AppVersion) (n []int) {
	for _, v := range all {
		n = append(n, v.Number)
	}
	return n
}

func TestFolderIsListedOnceWithItsLastVersion(t *testing.T) {
	t.Parallel()
	many := []api.AppVersion{}
	for i := range maxVersions {
		many = append(many, failed(i+1))
	}
	for name, c := range map[string]struct {
		all  []api.AppVersion
		next api.AppVersion
		want []int
	}{
		"the first":              {nil, kept(1, "/a"), []int{1}},
		"another folder":         {[]api.AppVersion{kept(1, "/a")}, kept(2, "/b"), []int{1, 2}},
		"the same folder":        {[]api.AppVersion{kept(1, "/a"), kept(2, "/b")}, kept(3, "/a"), []int{2, 3}},
		"a failure has no place": {[]api.AppVersion{kept(1, "/a"), failed(2)}, failed(3), []int{1, 2, 3}},
		"told twice":             {[]api.AppVersion{kept(1, "/a")}, kept(1, "/a"), []int{1}},
		"commands":               {[]api.AppVersion{kept(1, ""), kept(2, "")}, kept(3, ""), []int{3}},
		"too many":               {many, kept(maxVersions+1, "/a"), append(numbers(many[1:]), maxVersions+1)},
	} {
		before := numbers(c.all)
		if diff := cmp.Diff(c.want, numbers(withVersion(c.all, c.next))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(before, numbers(c.all)); diff != "" {
			t.Errorf("%s changed the list that it was given: %s", name, diff)
		}
	}
}

func TestVersionToRollBackTo(t *testing.T) {
	t.Parallel()
	live := kept(5, "/e")
	live.State = api.VersionLive
	all := []api.AppVersion{failed(6), live, failed(4), kept(3, "/c"), kept(2, ""), kept(1, "/a")}
	for name, c := range map[string]struct {
		all     []api.AppVersion
		wanted  int
		want    int
		status  int
		message string
		hint    string
	}{
		"the one before":       {all, 0, 3, 0, "", ""},
		"an older one":         {all, 1, 1, 0, "", ""},
		"the one that serves":  {all, 5, 0, http.StatusConflict, "version 5 is already serving", "use one of 3, 1"},
		"a failed one":         {all, 4, 0, http.StatusNotFound, "version 4 failed", "use one of 3, 1"},
		"a command":            {all, 2, 0, http.StatusNotFound, "version 2 has no folder", "use one of 3, 1"},
		"unknown":              {all, 9, 0, http.StatusNotFound, "version 9 not found: it may have been removed", "use one of 3, 1"},
		"nothing before":       {all[:3], 0, 0, http.StatusConflict, "no version to roll back to", "tendril deploy"},
		"an unknown and none":  {all[:3], 1, 0, http.StatusNotFound, "version 1 not found: it may have been removed", "tendril deploy"},
		"nothing has run here": {nil, 0, 0, http.StatusConflict, "no version to roll back to", "tendril deploy"},
	} {
		got, err := api.ChooseVersion(c.all, c.wanted)
		if c.want != 0 {
			if err != nil || got.Number != c.want {
				t.Errorf("%s: version %d, %v; want %d", name, got.Number, err, c.want)
			}
			continue
		}
		var refused *api.Error
		if !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(refused.Message, c.message) ||
			!strings.Contains(refused.Hint, c.hint) {
			t.Errorf("%s: version %d, %+v", name, got.Number, refused)
		}
	}
}

func TestRollbackErrorExplainsWhyAVersionIsUnavailable(t *testing.T) {
	t.Parallel()
	var all []api.AppVersion
	for number := range 3 {
		v := kept(number+1, "/srv/shop")
		v.InPlace = true
		all = withVersion(all, v)
	}
	copied := kept(4, "/data/versions/one")
	again := kept(5, "/data/versions/one")
	again.Of = 4
	all = withVersion(withVersion(all, copied), again)
	if diff := cmp.Diff([]int{1, 2}, all[0].Replaced); diff != "" {
		t.Fatal(diff)
	}
	all[0].State = api.VersionLive
	const typed = "'tendril deploy /srv/shop', which keeps a copy"
	for wanted, want := range map[int]api.Error{
		2: {Status: 404, Hint: "restore the files there and type " + typed,
			Message: "the files of version 2 were not kept: version 3 was started in place in /srv/shop, and not copied"},
		4: {Status: 404, Message: "version 4 is now version 5 after a rollback",
			Hint: "use one of 5; 'tendril versions' lists them"},
		6: {Status: 404, Message: "version 6 not found: it may have been removed",
			Hint: "use one of 5; 'tendril versions' lists them"},
	} {
		newestFirst := []api.AppVersion{all[1], all[0]}
		_, err := api.ChooseVersion(newestFirst, wanted)
		refused := (*api.Error)(nil)
		if !errors.As(err, &refused) || refused.Status != want.Status || refused.Message != want.Message ||
			refused.Hint != want.Hint {
			t.Errorf("version %d: %+v, want %+v", wanted, refused, want)
		}
	}
	_, err := api.ChooseVersion(all[:1], 0)
	refused := (*api.Error)(nil)
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.Message !=
		"no version to roll back to: version 3 was started in place in /srv/shop, and not copied" {
		t.Errorf("without a number: %+v", refused)
	}
	deployed := kept(8, "/data/versions/two")
	deployed.State = api.VersionLive
	_, err = api.ChooseVersion([]api.AppVersion{deployed, all[0]}, 0)
	if !errors.As(err, &refused) || !strings.HasSuffix(refused.Hint, typed) || refused.Message !=
		"no version to roll back to: version 3 was started in place in /srv/shop, and not copied" {
		t.Errorf("after the first deployment: %+v", refused)
	}
	for number := range 3 * maxVersions {
		v := kept(number+10, "/srv/shop")
		all = withVersion(all, v)
	}
	if got := len(all[len(all)-1].Replaced); got != maxVersions {
		t.Errorf("%d numbers of versions that are gone are kept", got)
	}
}

func TestVersionsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, folder := range []string{one, two} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, VersionsFile)
	start := func() *keptVersions {
		k := &keptVersions{path: path, log: slog.New(slog.DiscardHandler)}
		k.open()
		return k
	}
	first := start()
	first.add(kept(1, one))
	second := kept(2, two)
	second.Source, second.By, second.Size = "two.zip", "owner", 12
	second.DeployedAt = time.Date(2026, 11, 24, 3, 4, 5, 0, time.UTC)
	first.add(second)
	second.State = api.VersionLive
	if diff := cmp.Diff([]api.AppVersion{second, kept(1, one)}, start().list(2)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	if got := numbers(start().list(2)); len(got) != 1 || got[0] != 2 {
		t.Errorf("with the folder of version 1 gone: %v", got)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := start()
	if got := damaged.list(0); len(got) != 0 {
		t.Errorf("a damaged file: %+v", got)
	}
	damaged.add(kept(3, two))
	if got := numbers(start().list(0)); len(got) != 1 || got[0] != 3 {
		t.Errorf("after a damaged file: %v", got)
	}
}

func TestVersionsMoveWithTheDataDirectory(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"relative paths": `{"versions":[{"number":1,"folder":"versions/a/app"},{"number":2,"folder":"OTHER"},{"number":3,"folder":""}]}`,
		"absolute paths": `{"versions":[{"number":1,"folder":"/gone/data/versions/a/app"},{"number":2,"folder":"OTHER"},{"number":3,"folder":""}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, moved, other := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "moved"), t.TempDir()
			if err := errors.Join(os.MkdirAll(filepath.Join(old, "versions", "a", "app"), 0o700), os.WriteFile(
				filepath.Join(old, VersionsFile), []byte(strings.ReplaceAll(before, "OTHER", other)), 0o600)); err != nil {
				t.Fatal(err)
			}
			open := func(dir string) *keptVersions {
				k := &keptVersions{path: filepath.Join(dir, VersionsFile), log: slog.New(slog.DiscardHandler)}
				k.open()
				return k
			}
			folders := func(dir string) (all []string) {
				for _, v := range open(dir).list(0) {
					all = append(all, v.Folder)
				}
				return all
			}
			if diff := cmp.Diff([]string{"", other, filepath.Join(old, "versions", "a", "app")}, folders(old)); diff != "" {
				t.Errorf("before the move (-want +got):\n%s", diff)
			}
			open(old).add(failed(4))
			if err := os.Rename(old, moved); err != nil {
				t.Fatal(err)
			}
			want := []string{"", "", other, filepath.Join(moved, "versions", "a", "app")}
			if diff := cmp.Diff(want, folders(moved)); diff != "" {
				t.Errorf("after it (-want +got):\n%s", diff)
			}
		})
	}
}
