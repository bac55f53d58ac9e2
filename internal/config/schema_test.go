package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tendril.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("tendril.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, data []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &value); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

func TestSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{"unknown-key", "unknown-empty-key", "map-for-a-value", "no-choice", "out-of-range", "no-switch",
		"list-for-one-value", "a-list-at-the-top", "a-word-at-the-top", "unknown-sqsd-name", "sqsd-no-map",
		"queue-with-an-unknown-key", "queue-with-a-map-in-it", "list-of-maps", "no-value", "sqsd-name-as-a-key"}
	valid, refused := 0, 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(Sources{Environ: home(), Flags: map[string]string{"config": path}})
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		switch {
		case err == nil && !cfg.DaemonFile():
			valid++
			if err := validate(t, schema, data); err != nil {
				t.Errorf("%s: Load accepts the file, but the schema rejects it: %v", path, err)
			}
		case slices.Contains(seen, name):
			refused++
			if err := validate(t, schema, data); err == nil {
				t.Errorf("%s: Load rejects the file, but the schema accepts it", path)
			}
		}
	}
	if valid < 30 || refused != len(seen) {
		t.Errorf("%d files were valid, and %d of %d refused", valid, refused, len(seen))
	}
}

func TestSchemaAcceptsTheDurationsOfParseDuration(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, value := range []string{"30", "30s", `"30"`, "1h30m", "0.5h", "2d", "90.5", "1h0.5s", "10 minutes", "5 m", "m", "1w",
		"1d12h", "soon", "1h30", "+30s", `"+30"`} {
		line := "inactivity_timeout: " + value + "\n"
		_, err := ParseDuration(strings.Trim(value, `"`))
		if valid := validate(t, schema, []byte(line)) == nil; valid != (err == nil) {
			t.Errorf("%q: the schema accepts it: %t; ParseDuration: %v", value, valid, err)
		}
	}
}

func TestSchemaTakesEveryDefault(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, o := range Options() {
		for _, value := range []string{o.Default, o.Example} {
			if o.Key == "" || value == "" {
				continue
			}
			if strings.HasPrefix(value, "{") {
				value = "'" + value + "'"
			}
			if err := validate(t, schema, []byte(o.Key+": "+value+"\n")); err != nil {
				t.Errorf("%s: %s: %v", o.Key, value, err)
			}
		}
	}
}
