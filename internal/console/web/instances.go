package web

var instanceScreens = []screen{{path: "/instances", entry: "Instances", view: "instances",
	load: func(v *visit) (any, error) { return v.api.Instances(v.ctx) }}}

// protection describes scale-in protection; "" if unknown.
func protection(on *bool) string {
	switch {
	case on == nil:
		return ""
	case *on:
		return "protected from scale-in"
	}
	return "not protected from scale-in"
}
