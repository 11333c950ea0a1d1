/** Writes the generated pages of docs/ from the code that they describe. With `--check` nothing is written and a stale page is an error. */
import { apiPage } from './docs/api-page.ts'
import { commandsPage } from './docs/commands-page.ts'
import { configPage } from './docs/config-page.ts'
import { errorsPage } from './docs/errors-page.ts'
import { metricsPage } from './docs/metrics-page.ts'
import { adminOpenApi } from './docs/openapi/admin.ts'
import { bundleOpenApi } from './docs/openapi/bundle.ts'
import { executionOpenApi } from './docs/openapi/execution.ts'
import { indexerOpenApi, operatorOpenApi } from './docs/openapi/operator.ts'
import { senderOpenApi } from './docs/openapi/sender.ts'
import { executionAsyncApi } from './docs/openapi/stream.ts'
import { schemaPage } from './docs/schema-page.ts'
import { keepFresh } from './keep-fresh.ts'

keepFresh({
  'docs/config.md': configPage(),
  'docs/commands.md': commandsPage(),
  'docs/errors.md': errorsPage(),
  'docs/metrics.md': metricsPage(),
  'docs/api.md': apiPage(),
  'docs/schema.md': schemaPage(),
  'docs/openapi/admin.json': jsonText(adminOpenApi()),
  'docs/openapi/bundle.json': jsonText(bundleOpenApi()),
  'docs/openapi/execution.json': jsonText(executionOpenApi()),
  'docs/openapi/indexer.json': jsonText(indexerOpenApi()),
  'docs/openapi/operator.json': jsonText(operatorOpenApi()),
  'docs/openapi/sender.json': jsonText(senderOpenApi()),
  'docs/asyncapi/execution.json': jsonText(executionAsyncApi()),
})

function jsonText(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
