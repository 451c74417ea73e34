"""The experiments of Li, Huang and So (2019), run here and set beside what the paper prints.

    paper        what the paper prints, and its settings
    data         the data of the experiments by name
    tasks        what is measured: one task gives one row
    speed        Tables 1, 2 and 4: processor time of every method, with its certified gap
    curves       Figure 3: convergence of the first-order methods at fixed λ
    accuracy     Table 3: test accuracy of plain, regularised and robust models
    experiments  which tasks make up each table, in full and quick
    runner       does what has no row yet, and says how far it is
    store        rows on disk, safe against being killed half way
    environment  the machine and the versions that rows were measured with
    worker       runs solvers that cannot be interrupted, in a process that can be ended
    summaries    rows condensed to what the tables and figures show
    table        a table as cells; time_tables and other_tables fill them
    figures      the figures
    findings     what agrees with the paper and what does not, from the rows
    document     one text as a page and as Markdown
    report       what the page says, in order

Those that measure know nothing of those that show.  ``benchmarks/`` shares ``paper``, ``data``,
``store`` and ``environment``.
"""
