package web

import (
	"fmt"
	"strings"

	"tendril/api"
)

var instanceScreens = []screen{{path: "/instances", entry: "Instances", view: "instances",
	load: func(v *visit) (any, error) { return v.api.Instances(v.ctx) }}}

func appliedText(all api.Instances) string {
	switch {
	case all.Revision == 0:
		return ""
	case all.Unread != "":
		return fmt.Sprintf("The instances that have applied revision %d of the environment are unknown.", all.Revision)
	}

	done, behind, unreachable := all.Applied(func(one *api.KnownInstance) bool { return one.Revision >= all.Revision })
	text := fmt.Sprintf("Revision %d of the environment is applied by %d of %s", all.Revision, done,
		plural(done+len(behind), "reachable instance"))
	if behind != nil {
		text += ", not yet by " + strings.Join(behind, ", ")
	}
	if unreachable != nil {
		text += "; unreachable: " + strings.Join(unreachable, ", ")
	}
	return text + "."
}

func protectionText(on *bool) string {
	switch {
	case on == nil:
		return ""
	case *on:
		return "protected from scale-in"
	}
	return "not protected from scale-in"
}
