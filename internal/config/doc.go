// Package config loads the settings, tracks the origin of each, and rejects invalid ones with advice.
//
// Every option is one row of the table behind [Options], whose value points at a field of [Settings].
//
// Sources, from weakest to strongest:
//
//	default
//	bundle       the folder's name, and its option settings: HttpPath, MinSize
//	file         tendril.yaml: http_path, sqsd: {HttpPath}, queues: [{name, weight, http_path}];
//	             or an aws-sqsd settings file, unchanged
//	registry     in the form of the file, without paths and identities; see Option.PerInstance
//	environment  TENDRIL_HTTP_PATH > TENDRIL_SQSD_HttpPath > WORKERLESS_..., AWS_REGION, PORT > SQSD_...
//	flag         --http-path, --concurrency
//
// A queue's own setting beats the setting for all queues, whichever layer either comes from. A stronger layer's list of
// queues replaces a weaker one.
//
// YAML values keep their spelling: 000000000012 and off are not converted. Messages never contain a password from a
// URL. The package opens no sockets, resolves no names and creates no folders.
package config
