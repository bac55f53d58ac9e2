package console

import (
	"context"
	"strconv"
	"strings"

	"tendril/api"
)

const (
	maxSettings = 200
	hiddenValue = "(hidden)" // stands for a secret
)

func checkChange(c *api.SettingsChange) error {
	if len(c.Set) == 0 || len(c.Set) > maxSettings {
		return api.BadRequest("the change sets no options, or too many",
			`send {"set": {"http-path": "/jobs"}} with 1 to `+strconv.Itoa(maxSettings)+" options; null removes one")
	}
	for name, text := range c.Set {
		if text != nil && strings.Contains(*text, hiddenValue) {
			refusal := api.BadRequest("the new value of "+name+" contains the words "+hiddenValue,
				"send the full value, or omit the option")
			refusal.Details = []api.Detail{{Option: name, Text: refusal.Message, Hint: refusal.Hint}}
			return refusal
		}
	}
	return nil
}

// SettingsScope returns the scope required for a change. code means that the change affects which programs run, access
// that it affects who has access.
func SettingsScope(code, access bool) string {
	switch {
	case access:
		return scopeOwn
	case code:
		return api.ScopeDeploy
	}
	return api.ScopeAct
}

// previewChange checks the scope first, because validating a value reads the files it names.
func (e *environmentRoutes) previewChange(c *call, change api.SettingsChange) (api.SettingsPreview, error) {
	if err := e.mayChange(c, change); err != nil {
		return api.SettingsPreview{}, err
	}
	return e.opts.Settings.PreviewChange(change)
}

func (e *environmentRoutes) mayChange(c *call, change api.SettingsChange) error {
	scope := e.opts.Settings.ChangeScope(change)
	if c.caller.may(scope) {
		return nil
	}
	return api.Forbidden("this change affects the code that runs or access to it: it needs the scope "+scope,
		"change it with 'tendril config set' as the user that runs tendril, or in the file")
}

// changeSettings continues if the caller disconnects, so that the settings file and the running settings stay
// consistent.
func (e *environmentRoutes) changeSettings(c *call, change api.SettingsChange) (api.SettingsPreview, error) {
	if change.Base == "" {
		return api.SettingsPreview{}, api.BadRequest("the change does not name its base file",
			`send the hash of GET /api/v1/config as "base"`)
	}
	if err := e.mayChange(c, change); err != nil {
		return api.SettingsPreview{}, err
	}
	ctx, cancel := e.bounded(context.WithoutCancel(c.ctx), api.MaxWait)
	defer cancel()
	preview, err := e.opts.Settings.ChangeSettings(ctx, change)
	return preview, asConflict(err)
}
