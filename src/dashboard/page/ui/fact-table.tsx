import type { ComponentChildren } from 'preact'
import type { ExplanationId } from '../../model/explanations.ts'
import { Explain } from './explain.tsx'

type FactTableProps = {
  title: string
  explains: ExplanationId
  /** Headings of the subject columns, then of the right-aligned figures. */
  subjects: readonly string[]
  figures: readonly string[]
  rows: readonly { key: string; subjects: readonly ComponentChildren[]; figures: readonly string[] }[]
  /** Shown when there are no rows. */
  none: string
}

/** A titled table of a drawer. */
export function FactTable({ title, explains, subjects, figures, rows, none }: FactTableProps) {
  return (
    <>
      <h3>
        {title}
        <Explain id={explains} />
      </h3>
      <table class="plain-table">
        <thead>
          <tr>
            {subjects.map((heading, at) => (
              <th key={at} scope="col">
                {heading}
              </th>
            ))}
            {figures.map((heading) => (
              <th key={heading} scope="col" class="right">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.subjects.map((subject, at) => (
                <td key={at}>{subject}</td>
              ))}
              {row.figures.map((figure, at) => (
                <td key={at} class="right number">
                  {figure}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="dim">{none}</p>}
    </>
  )
}
