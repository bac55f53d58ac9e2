package sqsapi

import (
	"cmp"
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

// parameters describes a request's fields by Query name. The JSON name is the json tag or the field's name. The Query
// name is the same, unless there is a query tag:
//
//	`query:"TagKey"`         a list: TagKey.1, TagKey.2
//	`query:"*RequestEntry"`  a list of structures with the action's name: SendMessageBatchRequestEntry.1.Id
//	`query:"Tag,Key"`        a map: Tag.1.Key, Tag.1.Value
//
// A request without a field that is tagged required is rejected.
type parameters map[string]*parameter

type parameter struct {
	index []int // for FieldByIndex
	bit   uint64
	json  string
	key   string
	of    parameters
	// isText marks fields that a single Query parameter sets, unlike lists, maps and structures.
	isText bool
	// transient strings share the request's memory and must not outlive it.
	transient bool
}

func parametersOf(t reflect.Type, action string) parameters {
	p := parameters{}
	for i, field := range wireFieldsOf(t, action) {
		f := &parameter{index: field.index, bit: 1 << i, json: field.json, key: field.key, isText: isText(field.typ),
			transient: t == reflect.TypeFor[messageAttribute]()}
		of := field.typ
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}

		if of.Kind() == reflect.Struct {
			f.of = parametersOf(of, action)
		}

		p[field.query] = f
		for _, name := range field.aliases() {
			if p[name] == nil {
				p[name] = f
			}
		}
	}
	return p
}

type wireFields []wireField

type wireField struct {
	index            []int
	typ              reflect.Type
	name             string // in Go
	json, query, key string // query and key also name elements in XML
	omitted          bool   // left out if empty
	required         bool
	of               wireFields // of a list's structures
}

// The SDK for Java writes Tags.1.Key although the JSON name is "tags".
func (f *wireField) aliases() []string {
	if f.key == "" {
		return []string{f.json}
	}
	return []string{f.json, f.name}
}

func wireFieldsOf(t reflect.Type, action string) (fields wireFields) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}

		field := wireField{index: f.Index, typ: f.Type, name: f.Name}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		field.json = cmp.Or(name, f.Name)
		field.omitted = strings.HasPrefix(options, "omit")
		field.required = f.Tag.Get("required") != ""
		field.query, field.key, _ = strings.Cut(f.Tag.Get("query"), ",")
		field.query = cmp.Or(strings.Replace(field.query, "*", action, 1), field.json)
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			field.of = wireFieldsOf(f.Type.Elem(), action)
		}
		fields = append(fields, field)
	}
	return fields
}

func requiredFields(t reflect.Type) wireFields {
	return slices.DeleteFunc(wireFieldsOf(t, ""), func(f wireField) bool { return !f.required })
}

func checkRequired(required wireFields, request any) error {
	for i := range required {
		if isEmpty(reflect.ValueOf(request).Elem().FieldByIndex(required[i].index)) {
			return missing(required[i].json)
		}
	}
	return nil
}

func isEmpty(v reflect.Value) bool {
	isList := v.Kind() == reflect.Map || v.Kind() == reflect.Slice
	return v.IsZero() || isList && v.Len() == 0
}

func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || t.Kind() == reflect.Pointer || t == reflect.TypeFor[[]byte]()
}

func setText(field reflect.Value, text string) error {
	switch to := field.Addr().Interface().(type) {
	case *string:
		*to = text
	case **string:
		*to = new(text)
	case **int:
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("must be of type integer, not " + quote(text))
		}
		*to = new(n)
	case *[]byte:
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return errors.New(strings.TrimSpace(notBase64))
		}
		*to = data
	}
	return nil
}

// errScattered means that a list's or structure's parameters are not consecutive and in order.
var errScattered = errors.New("the parameters are scattered")

// decode sets the fields of a request. As in SQS, unknown parameters are ignored, and the last duplicate wins. Errors
// are of type [*queue.Error].
func (p parameters) decode(values []formValue, request any) error {
	v := reflect.ValueOf(request).Elem()
	err := p.fill(v, values)
	if errors.Is(err, errScattered) {
		// Lists are usually in order, so they are sorted only after this error.
		v.SetZero()
		sortValues(values)
		err = p.fill(v, values)
	}

	if errors.Is(err, errScattered) {
		return malformed("two elements of a list have the same number")
	}
	return err
}

// fill requires values positioned at the names of v's fields.
func (p parameters) fill(v reflect.Value, values []formValue) error {
	var seen uint64
	for len(values) > 0 {
		head := values[0].head()
		f := p[head]
		if f == nil {
			values = values[1:]
			continue
		}

		var group []formValue
		group, values = cutGroup(values)
		switch field := v.FieldByIndex(f.index); {
		case f.isText:
			for i := range group {
				if err := setValue(field, &group[i]); err != nil {
					return err
				}
			}
		case seen&f.bit != 0:
			return errScattered
		default:
			if err := f.fillList(field, group); err != nil {
				return err
			}
		}
		seen |= f.bit
	}
	return nil
}

// cutGroup returns the first values with the same head, positioned after it.
func cutGroup(values []formValue) (group, rest []formValue) {
	head := values[0].head()
	n := 0
	for n < len(values) && values[n].head() == head {
		values[n].at += len(head) + 1
		n++
	}
	return values[:n], values[n:]
}

func setValue(field reflect.Value, v *formValue) error {
	if v.head() != "" {
		return nil
	}
	if err := setText(field, v.value); err != nil {
		return malformed(shorten(v.name) + " " + err.Error())
	}
	return nil
}

// fillList requires values positioned at the element numbers.
func (f *parameter) fillList(field reflect.Value, values []formValue) error {
	last := -1
	for len(values) > 0 {
		number, numbered := listNumber(values[0].head())
		if !numbered {
			n, err := f.fillUnnumbered(field, values)
			if err != nil {
				return err
			}
			values = values[n:]
			continue
		}

		if number <= last {
			return errScattered
		}
		last = number
		var element []formValue
		element, values = cutGroup(values)
		if err := f.fillElement(field, element); err != nil {
			return err
		}
	}

	if list, ok := field.Addr().Interface().(*attributeList); ok {
		list.sort()
	}
	return nil
}

// fillUnnumbered sets an element from the first n values. Old clients omit a single element's number:
// AttributeName=All, or Attribute.Name and Attribute.Value. An empty value then means an empty list.
func (f *parameter) fillUnnumbered(field reflect.Value, values []formValue) (n int, err error) {
	head := values[0].head()
	n = 1
	if head != "" {
		for n < len(values) && (values[n].head() == head || f.isPartOfElement(values[n].head())) {
			n++
		}
	}
	isEmpty := head == "" && values[0].value == ""
	if isEmpty || !f.isPartOfElement(head) {
		return n, nil
	}
	return n, f.fillElement(field, values[:n])
}

func (f *parameter) isPartOfElement(head string) bool {
	switch {
	case f.key != "":
		return head == f.key || head == "Value"
	case f.of != nil:
		return f.of[head] != nil
	}
	return head == ""
}

func (f *parameter) fillElement(field reflect.Value, values []formValue) error {
	switch list := field.Addr().Interface().(type) {
	case *[]string:
		*list = append(*list, values[len(values)-1].value)
		return nil
	case *[][]byte:
		data, err := base64.StdEncoding.DecodeString(values[len(values)-1].value)
		*list = append(*list, data)
		if err != nil {
			return malformed(shorten(values[0].name) + notBase64)
		}
		return nil
	case *map[string]string:
		key, value := f.keyValue(values)
		if *list == nil {
			*list = map[string]string{}
		}
		(*list)[key] = value
		return nil
	case *attributeList:
		name, _ := f.keyValue(values)
		parts, err := valuesBelow(values, "Value")
		if err != nil {
			return err
		}
		*list = append(*list, messageAttribute{name: name})
		return f.of.fill(reflect.ValueOf(&(*list)[len(*list)-1]).Elem(), parts)
	}

	field.Grow(max(1, queue.MaxBatch-field.Len()))
	field.SetLen(field.Len() + 1)
	return f.of.fill(field.Index(field.Len()-1), values)
}

func (f *parameter) keyValue(values []formValue) (key, value string) {
	for i := range values {
		switch values[i].head() {
		case f.key:
			key = values[i].value
		case "Value":
			value = values[i].value
		}
	}
	return key, value
}

// valuesBelow returns the values whose next name part is head, positioned after it, or errScattered if they are not
// consecutive.
func valuesBelow(values []formValue, head string) ([]formValue, error) {
	for len(values) > 0 && values[0].head() != head {
		values = values[1:]
	}
	if len(values) == 0 {
		return nil, nil
	}

	group, rest := cutGroup(values)
	if slices.ContainsFunc(rest, func(v formValue) bool { return v.head() == head }) {
		return nil, errScattered
	}
	return group, nil
}
