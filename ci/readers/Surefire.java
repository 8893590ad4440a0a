import java.io.PrintStream;
import java.util.Locale;
import org.apache.maven.plugin.surefire.log.api.NullConsoleLogger;
import org.apache.maven.plugins.surefire.report.ReportTestCase;
import org.apache.maven.plugins.surefire.report.ReportTestSuite;
import org.apache.maven.plugins.surefire.report.TestSuiteXmlParser;

/** Writes the test cases that Surefire reads: name, outcome, seconds and message, with a NUL behind each. */
class Surefire {
  public static void main(String[] arguments) throws Exception {
    try (PrintStream out = new PrintStream(arguments[1], "UTF-8")) {
      for (ReportTestSuite suite : new TestSuiteXmlParser(new NullConsoleLogger()).parse(arguments[0])) {
        for (ReportTestCase one : suite.getTestCases()) {
          String outcome =
              one.hasFailure() ? "failed" : one.hasError() ? "error" : one.hasSkipped() ? "skipped" : "passed";
          out.printf(
              Locale.ROOT, "%s\0%s\0%.3f\0%s\0", one.getName(), outcome, one.getTime(), one.getFailureMessage());
        }
      }
    }
  }
}
