"""Reports as they were made when a run was judged last, so that nothing is judged anew to be shown."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False, comment="digest of all that it rests on"),
        sa.Column("step", JSON, nullable=True, comment="what led to this run from the one before it, for histories"),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=False,
            comment="what pages show of the run, packed; it can be made again",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_reports_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_reports")),
    )


def downgrade() -> None:
    op.drop_table("reports")
