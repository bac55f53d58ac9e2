package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

type object = map[string]any

// Schema returns the JSON Schema of tendril.yaml. It accepts every file that [Load] accepts, but does not check how
// options combine.
func Schema() map[string]any {
	keys := object{}
	sqsd := object{}
	ofQueue := object{}
	rows := table(&Settings{})
	for _, o := range rows {
		if o.Key != "" && o.Key != queuesKey {
			keys[o.Key] = o.valueSchema()
		}
		for _, name := range o.workerNames() {
			sqsd[name] = o.valueSchema()
		}
	}

	for _, o := range queueTable(&QueueSettings{}, rows) {
		ofQueue[o.Key] = o.valueSchema()
	}

	item := object{"type": "object", "properties": ofQueue, "additionalProperties": false}
	keys[queuesKey] = object{"description": findByKey(rows, queuesKey).description(), "anyOf": []any{scalarSchema(),
		object{"type": "array", "items": object{"anyOf": []any{scalarSchema(), item}}}}}
	keys[sqsdSection] = object{"type": "object", "properties": sqsd, "additionalProperties": false,
		"description": "Options by their names in Elastic Beanstalk's namespace aws:elasticbeanstalk:sqsd."}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of tendril",
		"type": []string{"object", "null"}, "properties": keys, "additionalProperties": false,
	}
}

func scalarSchema() object {
	return object{"type": []string{"string", "number", "boolean"}}
}

func (o *Option) valueSchema() object {
	s := scalarSchema()
	switch o.Kind() {
	case kindInteger:
		s = object{"anyOf": []any{o.numbers(), object{"type": "string", "pattern": "^-?[0-9]+$"}}}
	case kindSwitch:
		s = object{"anyOf": []any{object{"type": "boolean"}, object{"enum": []any{0, 1}},
			object{"type": "string", "pattern": anyCasePattern("true", "false", "yes", "no", "on", "off", "0", "1")}}}
	case kindDuration:
		s = object{"type": []string{"string", "number"}, "pattern": durationPattern}
		if o.Default == unset {
			s = object{"type": []string{"string", "number", "null"}}
		}
	case kindRate, kindSize, kindNumber:
		s = object{"type": []string{"string", "number"}}
	case kindChoice:
		s = o.choiceSchema()
	}

	if o.list {
		s = object{"anyOf": []any{s, object{"type": "array", "items": scalarSchema()}}}
	}
	s["description"] = o.description()
	if o.Default != "" && o.Default != unset {
		s["default"] = o.Default
	}
	if o.Example != "" {
		s["examples"] = []string{o.Example}
	}

	return s
}

const durationPattern = `^\s*-?(([0-9]+\.?[0-9]*|\.[0-9]+)d?|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)\s*$`

func (o *Option) numbers() object {
	return object{"type": "integer", "minimum": json.Number(o.value.low), "maximum": json.Number(o.value.high)}
}

func (o *Option) choiceSchema() object {
	otherSpellings := object{"enum": []any{}}
	if o.value.acceptsOtherSpellings {
		otherSpellings = scalarSchema()
	}

	enum := []any{}
	for _, w := range o.Choices() {
		enum = append(enum, w)
		if w == Off { // YAML 1.1 parsers read off as false
			enum = append(enum, false)
		}
	}

	return object{"anyOf": []any{object{"enum": enum}, otherSpellings}}
}

func (o *Option) description() string {
	text := o.Help
	if o.Detail != "" {
		text += " " + o.Detail
	}
	return fmt.Sprintf("%s Allowed: %s%s.", text, o.Allowed(), o.unitNote())
}

func anyCasePattern(words ...string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, r := range w {
			fmt.Fprintf(&b, "[%c%c]", r, []rune(strings.ToUpper(string(r)))[0])
		}
	}
	return "^(" + b.String() + ")$"
}
