import type { ComponentChildren } from 'preact'

export type TableColumn<Row> = {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly align?: 'right'
  /** Left out at phone width. */
  readonly isMinor?: boolean
}

type TableProps<Row> = {
  label: string
  columns: readonly TableColumn<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** Shown instead of the table when there are no rows. */
  none: ComponentChildren
}

/** A list of records. The first column is the heading of its row. */
export function Table<Row>({ label, columns, rows, keyOf, none }: TableProps<Row>) {
  if (rows.length === 0) return <div class="empty-state">{none}</div>
  const classOf = ({ align, isMinor }: TableColumn<Row>): string =>
    [align === 'right' ? 'right number' : '', isMinor === true ? 'minor' : ''].join(' ').trim()
  return (
    <div class="table-box" role="group" aria-label={label} tabIndex={0}>
      <table class="records">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title === '' ? <span class="sr">Actions</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, at) =>
                at === 0 ? (
                  <th key={column.title} scope="row" class={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.title} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
