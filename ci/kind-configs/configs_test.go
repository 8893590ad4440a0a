package encoding

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigsOfWinconform(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("KIND_CONFIGS"), "*.yaml"))
	read := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "kind: Cluster") {
			continue
		}
		read++
		config, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := config.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		t.Logf("%s: %s, %d nodes, %s", filepath.Base(file), config.Name, len(config.Nodes), config.Networking.IPFamily)
	}
	if read != 2 {
		t.Errorf("%d configs", read)
	}
}
