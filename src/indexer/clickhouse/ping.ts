import { createHttpClient } from '../../platform/http/client/client.ts'
import { type ClickHouseAccount, createClickHouseLink } from './link.ts'

const CONNECT_MS = 5_000
/** The ping beside the statement needs a connection of its own. */
const CONNECTIONS_MAX = 2

/** Resolves when the server accepts the account. Rejects as `ClickHouseLink.run` does. */
export async function pingClickHouse(account: ClickHouseAccount): Promise<void> {
  using client = createHttpClient({ url: account.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS })
  await createClickHouseLink(client, account).run('SELECT 1')
}
