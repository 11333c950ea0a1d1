import type { ComponentChildren } from 'preact'
import { formatCount } from '../format.ts'
import type { ConnectionLine } from '../model/connection.ts'
import { showBytes, showSeconds } from '../model/time.ts'
import { interfaceLabel } from '../model/usage.ts'
import { Table, type TableColumn } from './table.tsx'

type ConnectionTableProps<Line> = {
  label: string
  lines: readonly Line[]
  /** The number of all connections, also of those that are not listed. */
  total: number
  /** The columns before those of the connection itself. */
  first?: readonly TableColumn<Line>[]
  /** Closes one. */
  action: (line: Line) => ComponentChildren
}

/** Open connections, the oldest first. */
export function ConnectionTable<Line extends ConnectionLine>(props: ConnectionTableProps<Line>) {
  const { label, lines, total, first = [], action } = props
  return (
    <>
      <Table
        label={label}
        rows={lines}
        keyOf={({ id }) => id}
        columns={[
          ...first,
          { title: 'Interface', cell: (line) => interfaceLabel(line.interface) },
          { title: 'From', cell: (line) => <code>{line.remote_address}</code>, isMinor: true },
          { title: 'Open for', align: 'right', cell: (line) => showSeconds(line.age_seconds) },
          { title: 'Subscribed', align: 'right', cell: (line) => formatCount(line.subscriptions), isMinor: true },
          { title: 'Sent', align: 'right', cell: (line) => showBytes(line.bytes_out), isMinor: true },
          { title: '', align: 'right', cell: action },
        ]}
        none={<p>Nothing is open. WebSocket connections and gRPC streams appear here while they last.</p>}
      />
      {total > lines.length && (
        <p class="dim">
          The oldest {formatCount(lines.length)} of {formatCount(total)} are shown.
        </p>
      )}
    </>
  )
}
