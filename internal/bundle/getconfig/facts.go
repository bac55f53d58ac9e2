package getconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts are the answers of get-config for one version of the app. Environment and OptionSettings may be secret.
type Facts struct {
	Environment    map[string]string            `json:"environment"`
	OptionSettings map[string]map[string]string `json:"optionsettings"`
	Container      map[string]any               `json:"container"`
	// Meta contains the worker's settings under sqsdconfig, by aws-sqsd key.
	Meta           map[string]any               `json:"meta"`
	PlatformConfig map[string]map[string]string `json:"platformconfig"`
}

// The get-config commands.
const (
	Environment    = "environment"
	OptionSettings = "optionsettings"
	Container      = "container"
	Meta           = "meta"
	PlatformConfig = "platformconfig"
	Addons         = "addons"
)

// Answer returns a command's object, or the value at a path in it: a key; a namespace and an option for
// [OptionSettings]; an add-on and a key for [Addons]. Empty elements are ignored.
func (f *Facts) Answer(command string, path ...string) (any, error) {
	object, err := f.object(command)
	if err != nil {
		return nil, err
	}

	path = slices.DeleteFunc(slices.Clone(path), func(name string) bool { return name == "" })
	if command == PlatformConfig && len(path) == 1 { // keys are unique across both objects
		object = f.platformKeys()
	}

	for _, name := range path {
		members, ok := object.(map[string]any)
		if !ok {
			return nil, unknownName(command, name, nil)
		}
		if command == Addons {
			members = variablesOf(members)
		}
		value, found := members[name]
		if !found {
			return nil, unknownName(command, name, members)
		}
		object = value
	}

	return object, nil
}

func (f *Facts) object(command string) (any, error) {
	text, err := json.Marshal(f) // its keys are the commands
	if err != nil {
		return nil, err
	}
	objects := map[string]map[string]any{}
	if err := json.Unmarshal(text, &objects); err != nil {
		return nil, err
	}

	objects[Addons] = addons(objects[Environment])
	object, known := objects[command]
	switch {
	case !known:
		return nil, fmt.Errorf("unknown command %q", command)
	case object == nil:
		return map[string]any{}, nil
	}
	return object, nil
}

func (f *Facts) platformKeys() map[string]any {
	all := map[string]any{}
	for _, part := range f.PlatformConfig {
		for key, value := range part {
			all[key] = value
		}
	}
	return all
}

// Elastic Beanstalk's only add-on is a database, whose properties start with RDS_.
func addons(environment map[string]any) map[string]any {
	database := maps.Clone(environment)
	maps.DeleteFunc(database, func(name string, _ any) bool { return !strings.HasPrefix(name, "RDS_") })
	if len(database) == 0 {
		return nil
	}
	return map[string]any{"rds": map[string]any{"Description": "RDS Environment variables", "env": database}}
}

func variablesOf(addOn map[string]any) map[string]any {
	if variables, ok := addOn["env"].(map[string]any); ok {
		return variables
	}
	return addOn
}

func unknownName(command, name string, members map[string]any) error {
	if len(members) == 0 {
		return fmt.Errorf("%s: unknown name %q: there are no names at this level", command, name)
	}
	return fmt.Errorf("%s: unknown name %q: use one of %s", command, name,
		strings.Join(slices.Sorted(maps.Keys(members)), ", "))
}

// Format returns a string unchanged, and any other value as one line of JSON.
func Format(answer any) (string, error) {
	if text, ok := answer.(string); ok {
		return text, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // scripts process the output with sed
	err := enc.Encode(answer)
	return strings.TrimSuffix(out.String(), "\n"), err
}
