package bundle

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unsupported lists what in the bundle Elastic Beanstalk would act on and
// tendril does not, sorted by file. A folder that cannot be listed is named as
// a whole.
func unsupported(dir string, entries []fs.DirEntry) []Finding {
	var found []Finding
	for _, e := range entries {
		switch name := e.Name(); name {
		case ".ebextensions":
			found = append(found, extensions(dir)...)
		case ".platform":
			found = append(found, platform(dir)...)
		default:
			if what := meaning(name); what != "" {
				found = append(found, Finding{File: name, What: what})
			}
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
	return found
}

// meaning says what a file at the bundle's root is for; "" for the app's own
// files.
func meaning(name string) string {
	switch name {
	case "cron.yml":
		return "this name is not read: periodic tasks belong in cron.yaml"
	case "Buildfile":
		return "build commands are not run by this release: build the app before tendril up"
	case "env.yaml":
		return "environment manifests are not read by this release"
	case "Dockerfile", "docker-compose.yml", "Dockerrun.aws.json":
		return "containers are not built or run: the Procfile starts the app on this machine"
	}
	if name != procfileName && strings.EqualFold(name, procfileName) {
		return "this name is not read: it must be spelled Procfile"
	}
	return ""
}

// extensions lists the configuration files of .ebextensions, and those in it
// whose suffix Elastic Beanstalk would not read either.
func extensions(dir string) []Finding {
	const folder = ".ebextensions"
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return []Finding{{File: folder, What: "option settings are not read by this release"}}
	}
	var found []Finding
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		what := "option settings are not read by this release: write them into tendril.yaml, those of aws:elasticbeanstalk:sqsd below the key sqsd"
		switch filepath.Ext(e.Name()) {
		case ".config":
		case ".yaml", ".yml", ".json":
			what = "this name is not read by Elastic Beanstalk either: its suffix must be .config"
		default:
			continue
		}
		found = append(found, Finding{File: path.Join(folder, e.Name()), What: what})
	}
	return found
}

// platform lists every hook below .platform, and the folders for proxies.
func platform(dir string) []Finding {
	var found []Finding
	for _, kind := range []string{"hooks", "confighooks"} {
		for _, stage := range []string{"prebuild", "predeploy", "postdeploy"} {
			below := path.Join(".platform", kind, stage)
			entries, _ := os.ReadDir(filepath.Join(dir, filepath.FromSlash(below))) // an absent stage has no hooks
			for _, e := range entries {
				found = append(found, Finding{File: path.Join(below, e.Name()), What: "hooks are not run by this release"})
			}
		}
	}
	for _, proxy := range []string{"nginx", "httpd"} {
		below := path.Join(".platform", proxy)
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(below))); err == nil && info.IsDir() {
			found = append(found, Finding{File: below, What: "there is no proxy in front of the app: messages are posted to its port"})
		}
	}
	return found
}
