import { formatCompact } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import type { SeriesRecord } from '../../client/wire.ts'
import { hourPoints, sumOf } from '../../model/hour-series.ts'
import { Line } from '../ui/line.tsx'
import { Link } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const REFRESH_MS = 30_000
/** While hours are still added up. */
const INCOMPLETE_MS = 1000
const LINES = [
  { of: 'calls', title: 'Calls', unit: 'calls' },
  { of: 'units', title: 'Units', unit: 'units' },
  { of: 'refused', title: 'Refused', unit: 'calls', tone: 'fair' },
] as const

/** What all customers used, by hour. */
export function LastHours() {
  const loaded = useLoad<SeriesRecord>('overviewSeries', {
    everyMs: (series) => (series?.is_complete === false ? INCOMPLETE_MS : REFRESH_MS),
  })
  return (
    <Panel id="hours" title="The last 48 hours (UTC)" aside={<Link to={{ view: 'usage' }}>By customer</Link>}>
      <Loading of={loaded.value}>
        {(series) => (
          <>
            <div class="lines">
              {LINES.map(({ of, title, unit, ...more }) => {
                const points = hourPoints(series, of)
                return (
                  <Line
                    key={of}
                    title={title}
                    figure={formatCompact(sumOf(points))}
                    points={points}
                    format={formatCompact}
                    unit={unit}
                    {...more}
                  />
                )
              })}
            </div>
            {!series.is_complete && (
              <p class="dim" role="status">
                Older hours are being added up…
              </p>
            )}
          </>
        )}
      </Loading>
    </Panel>
  )
}
