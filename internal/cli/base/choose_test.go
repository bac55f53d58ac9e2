package base

import (
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/config"
)

func TestChooseRunning(t *testing.T) {
	t.Parallel()
	found := func(name, folder string) api.Found {
		return api.Found{DataDir: "/data/" + name, Name: name, Instance: api.Instance{Environment: name, Folder: folder}}
	}
	shopA, shopB := found("shop@a", "/srv/shop"), found("shop@b", "/srv/shop")
	shopA.Environment = "shop"
	shopB.Environment = "shop"
	apps, orders := found("apps", "/srv/apps"), found("orders", "/srv/apps/orders")
	second := found("second", "/srv/apps/orders")
	reports := found("reports", "/srv/reports")
	deep := found("deep", "/srv/apps/deep")
	for name, tt := range map[string]struct {
		flags   map[string]string
		here    string
		running []api.Found
		others  []api.Found
		want    string
		refused string
	}{
		"nothing runs":                    {here: "/srv/apps", want: "/data/settings"},
		"the only one is found anywhere":  {here: "/tmp", running: []api.Found{orders}, want: "/data/orders"},
		"the folder decides":              {here: "/srv/reports/deep", running: []api.Found{apps, reports}, want: "/data/reports"},
		"the deepest folder decides":      {here: "/srv/apps/orders", running: []api.Found{apps, orders}, want: "/data/orders"},
		"the deepest folder in any order": {here: "/srv/apps/orders", running: []api.Found{orders, apps}, want: "/data/orders"},
		"a named one outranks the folder": {flags: map[string]string{"name": "reports"}, here: "/srv/apps", running: []api.Found{apps, reports}, want: "/data/reports"},
		"a named one that does not run":   {flags: map[string]string{"name": "gone"}, here: "/srv/apps", running: []api.Found{apps}, want: "/data/settings"},
		"several elsewhere":               {here: "/tmp", running: []api.Found{apps, reports}, refused: "2 environments are running, none of them in this folder: apps (/srv/apps), reports"},
		"several in one folder":           {here: "/srv/apps/orders/deep", running: []api.Found{apps, orders, second, reports}, refused: "2 environments are running in /srv/apps/orders: orders, second"},
		"another data directory":          {here: "/tmp", running: []api.Found{apps}, others: []api.Found{deep}, want: "/data/apps"},
		"another one listed":              {here: "/tmp", running: []api.Found{apps, reports}, others: []api.Found{deep}, refused: "3 environments are running, none of them in this folder: apps (/srv/apps), reports (/srv/reports), deep (/srv/apps/deep)"},
		"another one here":                {here: "/srv/apps/deep", running: []api.Found{reports}, others: []api.Found{deep}, refused: `environment "deep" is running in this folder, with its own data directory`},
		"another one closer":              {here: "/srv/apps/deep", running: []api.Found{apps}, others: []api.Found{deep}, refused: `environment "deep" is running in this folder, with its own data directory`},
		"another one below":               {here: "/srv/apps", running: []api.Found{reports}, others: []api.Found{deep}, want: "/data/reports"},
		"another one in the same folder":  {here: "/srv/apps/orders", running: []api.Found{orders}, others: []api.Found{second}, want: "/data/orders"},
		"several of one name":             {flags: map[string]string{"name": "shop"}, here: "/srv/apps", running: []api.Found{apps, shopA, shopB}, refused: `2 environments named "shop" are running: shop@a, shop@b`},
		"several of one name, here":       {here: "/srv/shop", running: []api.Found{apps, shopA, shopB}, refused: "2 environments are running in /srv/shop: shop@a, shop@b"},
		"only others here":                {here: "/srv/shop", others: []api.Found{shopA, shopB}, refused: "2 environments are running in this folder, with their own data directories: shop@a, shop@b"},
		"others elsewhere":                {here: "/tmp", others: []api.Found{shopA, shopB}, want: "/data/settings"},
		"several others here":             {here: "/srv/shop", running: []api.Found{apps}, others: []api.Found{shopA, shopB}, refused: "2 environments are running in this folder, with their own data directories: shop@a, shop@b"},
		"several below do not matter":     {here: "/srv/apps", running: []api.Found{apps, orders, second}, want: "/data/apps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := map[string]string{"data-dir": "/data/settings"}
			for name, value := range tt.flags {
				flags[name] = value
			}
			cfg, err := config.Load(config.Sources{Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			got, err := chooseRunning(cfg, tt.here, tt.running, tt.others)
			if got != tt.want || (err == nil) != (tt.refused == "") {
				t.Fatalf("chose %q, %v; want %q, error %q", got, err, tt.want, tt.refused)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.refused) || ExitCode(err) != ExitUsage) {
				t.Errorf("error %q, exit %d; want %q", err, ExitCode(err), tt.refused)
			}
		})
	}
}
