package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"tendril/internal/console"
)

func (n *jsonNode) outline() string {
	text := n.Text
	if text == "" {
		var parts []string
		for _, member := range n.Nodes {
			parts = append(parts, member.outline())
		}
		if n.Cut {
			parts = append(parts, "…")
		}
		text = n.Brackets()[:1] + strings.Join(parts, " ") + n.Brackets()[1:]
	}
	return n.Name + text
}

func TestTreeHasTheValuesOfTheDocument(t *testing.T) {
	for text, want := range map[string]string{
		`{"b": 1, "a": [true, null, "x"], "b": {}}`:       `{"b"1 "a"[true null "x"] "b"{}}`,
		`{"id": 12345678901234567890.10, "e": 1E400}`:     `{"id"12345678901234567890.10 "e"1E400}`,
		`"M\u00fcller <b>\n\u2028"`:                       `"Müller <b>\n\u2028"`,
		`{"": ""}`:                                        `{""""}`,
		` [[], [[1]]] `:                                   `[[] [[1]]]`,
		strings.Repeat("[", 40) + strings.Repeat("]", 40): strings.Repeat("[", 32) + "…" + strings.Repeat("]", 32),
		`{"a":` + strings.Repeat("[", 33) + `{"x":[1]}` + strings.Repeat("]", 33) + `,"b":2}`: `{"a"` +
			strings.Repeat("[", 31) + "…" + strings.Repeat("]", 31) + ` "b"2}`,
	} {
		tree, _ := treeOf(text)
		if tree == nil || tree.outline() != want {
			t.Errorf("the tree of %s is %s, want %s", text, tree.outline(), want)
		}
	}
	for _, text := range []string{"", "x", "{", "[1,]", "{} {}", "\xff", "1 2"} {
		if tree, _ := treeOf(text); tree != nil {
			t.Errorf("%q is no JSON document and has a tree", text)
		}
	}
}

func TestTreeIsBounded(t *testing.T) {
	count := 0
	var walk func(n *jsonNode)
	walk = func(n *jsonNode) {
		count++
		for _, member := range n.Nodes {
			walk(member)
		}
	}
	items := strings.TrimSuffix(strings.Repeat(`{"a":1},`, maxTreeNodes), ",")
	tree, whole := treeOf(`{"list":[` + items + `],"after":1}`)
	walk(tree)
	if count != maxTreeNodes || whole || !tree.Cut || !tree.Nodes[0].Cut || len(tree.Nodes) != 1 {
		t.Errorf("the tree has %d values and is whole: %v", count, whole)
	}
	exact := "[" + strings.TrimSuffix(strings.Repeat("1,", maxTreeNodes-1), ",") + "]"
	if tree, whole := treeOf(exact); !whole || tree.Cut || len(tree.Nodes) != maxTreeNodes-1 {
		t.Errorf("of %d values %d are shown", maxTreeNodes, len(tree.Nodes))
	}
	if _, whole := treeOf(strings.Repeat("[", 40) + strings.Repeat("]", 40)); whole {
		t.Error("a tree without its deepest levels is said to be whole")
	}
}

func TestMessagePageFoldsJSON(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	id := s.send("jobs", `{"order": {"id": 9007199254740993, "note": "<script>x</script>"}, "lines": [1, 2]}`)
	page := s.get("/messages/" + id + "?queue=jobs")
	for _, part := range []string{`<ul class="tree mono"`, "<details open><summary>", "2 items",
		`<span class="number">9007199254740993</span>`, `&lt;script&gt;x&lt;/script&gt;`, `as=raw`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page does not have %s", part)
		}
	}
	checkMarkup(t, "message", page)
	if raw := s.get("/messages/" + id + "?queue=jobs&as=raw"); strings.Contains(raw, `class="tree`) ||
		!strings.Contains(raw, `<pre class="body"`) {
		t.Error("the text of the body is not one click away")
	}
	many := s.send("jobs", fmt.Sprintf("[%s1]", strings.Repeat("1,", maxTreeNodes)))
	if page := s.get("/messages/" + many + "?queue=jobs"); !strings.Contains(page, "Show the full text") {
		t.Error("the page does not say that the tree ends early")
	}
	plain := s.send("jobs", "{not json")
	if page := s.get("/messages/" + plain + "?queue=jobs&as=json"); strings.Contains(page, `class="tree`) {
		t.Error("a text is shown as a tree")
	}
}

func TestHiddenBodiesHaveNoTree(t *testing.T) {
	s := newSiteWith(t, console.Access{HideBodies: true})
	s.queue("jobs", nil)
	id := s.send("jobs", `{"secret-name": 1}`)
	at := "/messages/" + id + "?" + url.Values{"queue": {"jobs"}, "as": {"json"}}.Encode()
	if page := s.get(at); strings.Contains(page, "secret-name") || strings.Contains(page, `class="tree`) {
		t.Error("a hidden body is shown")
	}
	if page := s.get(at + "&body=1"); !strings.Contains(page, "secret-name") {
		t.Error("the body is not shown when it is asked for")
	}
}
