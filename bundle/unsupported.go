package bundle

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// nameUnread names what lies at the bundle's root for Elastic Beanstalk, or was
// meant for it and is misspelt, and is not read.
func (o *opening) nameUnread() {
	for _, e := range o.entries {
		name := e.Name()
		if what := meaning(name); what != "" {
			o.notUsed(name, what)
		}
		if e.IsDir() && name != extensionsName {
			o.nestedExtensions(name)
		}
	}
	o.namePackages()
}

// nestedExtensions names configuration files in a folder that is no root of a
// bundle: Elastic Beanstalk reads them wherever they are.
func (o *opening) nestedExtensions(folder string) {
	inside, _ := filepath.Glob(filepath.Join(o.dir, folder, extensionsName, "*.config"))
	if len(inside) > 0 {
		o.notUsed(path.Join(folder, extensionsName),
			"only the folder .ebextensions at the root of the bundle is read: move its files there")
	}
}

// meaning says what a file at the bundle's root is for; "" for the app's own
// files and for those that are read.
func meaning(name string) string {
	switch name {
	case "Dockerfile", "docker-compose.yml", "Dockerrun.aws.json":
		return "containers are not built or run: the Procfile starts the app on this machine"
	case "aws-windows-deployment-manifest.json":
		return "apps of IIS are not run: the Procfile starts the app on this machine"
	case "cron.yml":
		return "this name is not read: periodic tasks belong in cron.yaml"
	case "env.yml":
		return "this name is not read: the manifest of the environment is env.yaml"
	}
	for _, known := range []string{procfileName, buildfileName, cronName, manifestName, extensionsName, platformName} {
		if name != known && similar(name, known) {
			return fmt.Sprintf("this name is not read: it must be spelled %s", known)
		}
	}
	return ""
}

// similar reports whether two names differ by case, a leading dot, a plural and
// the suffix .txt alone.
func similar(a, b string) bool {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(s), ".txt"), "."), "s")
	}
	return plain(a) == plain(b) && (strings.HasPrefix(a, ".") || !strings.HasPrefix(b, ".") || b == extensionsName)
}
