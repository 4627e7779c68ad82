"""Where online detectors stand, of each watched run and of each group of runs.

Why: docs/decisions/0005-detectors.md.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
BUCKET = "the last minute that was taken in, seconds since 1970"
STATE = "where the detectors stand (analysis.watching)"


def upgrade() -> None:
    op.create_table(
        "run_detectors",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("group_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment=BUCKET),
        sa.Column("state", JSON, nullable=False, comment=STATE),
        sa.Column("recent", JSON, nullable=False, comment="acceptance of late, to compare the fleet's runs by"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_detectors_run_id_runs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["run_groups.id"], name=op.f("fk_run_detectors_group_id_run_groups"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_detectors")),
        comment="what is watched for changes in a run while it is scraped",
    )
    op.create_index(op.f("ix_run_detectors_group_id"), "run_detectors", ["group_id"])
    op.create_table(
        "fleet_detectors",
        sa.Column("group_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment=BUCKET),
        sa.Column("state", JSON, nullable=False, comment=STATE),
        sa.ForeignKeyConstraint(
            ["group_id"], ["run_groups.id"], name=op.f("fk_fleet_detectors_group_id_run_groups"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_id", name=op.f("pk_fleet_detectors")),
        comment="the same of all runs of a group together",
    )


def downgrade() -> None:
    op.drop_table("fleet_detectors")
    op.drop_table("run_detectors")
