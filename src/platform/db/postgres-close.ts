import type { Socket } from 'node:net'
import type pg from 'pg'
import type { Clock } from '../../core/clock.ts'

/** How long closing waits for queries that are under way. */
const CLOSE_MS = 1000

/** The driver has its socket here; its types do not say so. */
type Connected = { readonly connection?: { readonly stream?: Socket } }

/** Closes connections in order, but a server that does not respond does not hold up the end of the process until its queries time out. */
export async function closePostgres(
  clients: Iterable<pg.ClientBase>,
  clock: Clock,
  end: () => Promise<void>,
): Promise<void> {
  using _timer = clock.setTimer(CLOSE_MS, () => {
    for (const client of clients) (client as Connected).connection?.stream?.destroy()
  })
  await end()
}
