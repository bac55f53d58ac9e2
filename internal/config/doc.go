// Package config loads the settings, tracks the origin of each, and rejects invalid ones with advice.
//
// Every option is one row of the table behind [Options]: its name in each notation, kind, default, range and help.
// Flags, variables, the settings file, messages, documentation and completion all derive from that row.
// To add an option, add a field to [Settings] and a row whose value points at that field.
//
//	default < bundle < file < registry < environment < flag        [Load]
//	             |       |       |          |          |
//	             |       |       |          |          --http-path, --concurrency
//	             |       |       |          TENDRIL_HTTP_PATH > TENDRIL_SQSD_HttpPath
//	             |       |       |            > WORKERLESS_..., AWS_REGION, PORT > SQSD_...
//	             |       |       in the form of the file, without paths and identities; see Option.PerInstance
//	             |       tendril.yaml: http_path, sqsd: {HttpPath},
//	             |       queues: [{name, weight, http_path}]
//	             |       or an aws-sqsd settings file, unchanged
//	             the folder's name, its option settings: HttpPath, MinSize
//	                     |
//	                     v
//	   check every value, overridden or not       -> *Error: all problems at once
//	   derive the values that follow from others     (backend, queue, region, ...)
//	   note legal but suspicious settings         -> Config.Warnings
//
// Settings.Queues holds every queue with its complete settings, even if there is only one. A queue's own setting
// beats the setting for all queues, whichever layer either comes from. If a stronger layer names the queues, its list
// replaces the weaker one, and a warning lists the settings that are dropped.
//
// A [Config] exists only if every value in every layer was valid. Each value has an origin: file and line, variable
// or flag ([Config.Origin], [Config.Explain]). YAML values keep their spelling: 000000000012 and off are not
// converted. Messages never contain a password from a URL.
//
// Settings of aws-sqsd or Workerless without effect here are reported, never silently ignored. Files have a size
// limit, and YAML features that let a small file expand are refused before parsing.
//
// The package opens no sockets, resolves no names and creates no folders; its callers find out whether a queue exists
// or a port is free.
package config
