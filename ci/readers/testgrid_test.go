package updater

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/GoogleCloudPlatform/testgrid/metadata"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	statuspb "github.com/GoogleCloudPlatform/testgrid/pb/test_status"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
)

// Writes into the file testgrid the cells that TestGrid makes of $ARTIFACTS, and fails if its header cannot show all of metadata.json.
func TestWinconform(t *testing.T) {
	folder := os.Getenv("ARTIFACTS")
	path, err := gcs.NewPath("file://" + folder + "/")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "metadata.json"))
	var finished gcs.Finished
	if err == nil {
		// Where Prow's sidecar puts it
		err = json.Unmarshal(text, &finished.Metadata)
	}
	if err != nil {
		t.Fatal(err)
	}
	artifacts, suites := make(chan string, 1), make(chan gcs.SuitesMeta, 1)
	artifacts <- filepath.Join(folder, "junit_winconform.xml")
	close(artifacts)
	const longest = 10000
	if err := (gcs.Build{Path: *path}).Suites(context.Background(), gcs.NewLocalClient(), artifacts, suites, longest); err != nil {
		t.Fatal(err)
	}
	var headers []string
	for name := range finished.Metadata {
		headers = append(headers, name)
	}
	result := gcsResult{finished: finished, suites: []gcs.SuitesMeta{<-suites}}
	column := convertResult(logrus.New(), makeNameConfig(&configpb.TestGroup{}), "1", headers, result, groupOptions{})
	shown := finished.Metadata.Strings()
	if len(shown) == 0 || len(shown) != len(headers) || len(column.Column.Extra) != len(headers) {
		t.Errorf("metadata.json has %d values, the header shows %q", len(headers), column.Column.Extra)
	}
	for i, value := range column.Column.Extra {
		if value == metadata.Missing || value != shown[headers[i]] {
			t.Errorf("%s is shown as %q", headers[i], value)
		}
	}
	outcomes := map[statuspb.TestStatus]string{
		statuspb.TestStatus_PASS: "passed", statuspb.TestStatus_PASS_WITH_SKIPS: "skipped", statuspb.TestStatus_FAIL: "bad",
	}
	out, err := os.Create(filepath.Join(folder, "testgrid"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for row, cell := range column.Cells {
		// Of the suite's name the row's begins with, which has an area; TestGrid adds one for the build
		if name := strings.SplitN(row, ".", 3); name[0] == "winconform" {
			fmt.Fprintf(out, "%s\x00%s\x00%.3f\x00%s\x00", name[2], outcomes[cell.Result], cell.Metrics[ElapsedKey]*60, cell.Message)
		}
	}
}
