import type { ComponentChildren } from 'preact'
import { LoadedView } from '../../../ui/page/loaded-view.tsx'
import { useStore } from '../store.ts'
import type { LoadedRecord } from './load.ts'

type LoadingProps<Value> = {
  of: LoadedRecord<Value>
  children: (value: Value) => ComponentChildren
  /** Shown where the process does not have it, which is no error. */
  missing?: ComponentChildren
}

const MISSING: readonly string[] = ['not-found', 'not-available']

/** What was loaded, or why there is nothing yet, with a button that loads it again. */
export function Loading<Value>({ of, children, missing }: LoadingProps<Value>) {
  const { changes } = useStore()
  if (missing !== undefined && of.error !== undefined && MISSING.includes(of.error.code))
    return <Empty>{missing}</Empty>
  return (
    <LoadedView of={of} onRetry={() => (changes.value += 1)}>
      {children}
    </LoadedView>
  )
}

/** Shown where there is nothing, with what to do. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty-state">{children}</div>
}
